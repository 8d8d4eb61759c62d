"""Bad answers become errors of our own tree, and never carry what was secret."""

import json

import pytest

from controller.errors import (
    TEXT_LIMIT,
    ClusterConflict,
    ClusterError,
    ClusterForbidden,
    ClusterNotFound,
    ClusterRefused,
    ClusterUnavailable,
)
from controller.gateways.kubernetes.wire import Call, path, refusal

CALL = Call("create pod x", "POST", "/api/v1/namespaces/default/pods")


def a_status(reason: str, message: str) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ClusterRefused),
        (401, ClusterForbidden),
        (403, ClusterForbidden),
        (404, ClusterNotFound),
        (405, ClusterRefused),
        (408, ClusterUnavailable),
        (409, ClusterConflict),
        (410, ClusterRefused),
        (422, ClusterRefused),
        (429, ClusterUnavailable),
        (302, ClusterUnavailable),
        (500, ClusterUnavailable),
        (503, ClusterUnavailable),
        (504, ClusterUnavailable),
    ],
)
def test_every_status_has_its_error(status: int, error: type[ClusterError]) -> None:
    found = refusal(CALL, status, a_status("Word", "sentence"))
    assert type(found) is error
    assert found.status == status
    assert str(found) == f"create pod x: {status} Word: sentence"


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"[]", b"null", b"\xff"])
def test_a_proxys_answer_is_understood_too(body: bytes) -> None:
    assert str(refusal(CALL, 502, body)) == "create pod x: 502"


def test_long_complaints_are_clipped() -> None:
    assert len(str(refusal(CALL, 422, a_status("Invalid", "x" * 5000)))) == TEXT_LIMIT


def test_a_complaint_that_quotes_the_secret_is_not_passed_on() -> None:
    call = Call("create secret x", "POST", "/s", body={"data": {"jitconfig": "c2VjcmV0"}}, confidential=True)
    error = refusal(call, 400, a_status("BadRequest", 'bigger context ...|{"jitconfig":"c2VjcmV0"|...'))
    assert str(error) == "create secret x: 400 BadRequest"
    assert "c2VjcmV0" not in repr(call)


def test_names_are_quoted_in_addresses() -> None:
    assert path("namespaces", "default", "pods", "a/../b") == "/api/v1/namespaces/default/pods/a%2F..%2Fb"
