"""Signed nonsense: a delivery is taken whole or refused with a sentence; never a 500, never a partial row."""

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from controller.gateways.postgres.database import Database
from tests.integration.postgres.queries import clear, counts
from tests.integration.web.receiving import Sender, receiving
from tests.payloads import a_guid, job_payload
from tests.postgres import Databases, opened


def job(**fields: Any) -> bytes:
    return json.dumps(job_payload(job=fields)).encode()


def without(*path: str) -> bytes:
    payload = copy.deepcopy(job_payload())
    place: Any = payload
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return json.dumps(payload).encode()


BAD: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{'single': 'quotes'}",
    "not UTF-8": b'{"action": "\xff"}',
    "not an object": b"[]",
    "null": b"null",
    "NaN": b'{"action": NaN}',
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a number of 5,000 digits": b'{"action": ' + b"9" * 5_000 + b"}",
    "id beyond 64 bits": job(id=2**63),
    "id far beyond 64 bits": job(id=10**300),
    "id zero": job(id=0),
    "id negative": job(id=-1),
    "id as text": job(id="4200"),
    "id as a fraction": job(id=1.5),
    "id true": job(id=True),
    "run id null": job(run_id=None),
    "labels no list": job(labels="ubuntu"),
    "labels of numbers": job(labels=[1]),
    "10,000 labels": job(labels=[f"label-{n}" for n in range(10_000)]),
    "null byte in a label": job(labels=["a\x00b"]),
    "null byte in the name": job(name="a\x00b"),
    "half a character": job(name="\ud800"),
    "status a number": job(status=1),
    "runner an object": job(runner_name={}),
    "runner too long": job(runner_name="r" * 300),
    "no time at all": job(created_at=None, started_at=None),
    "time no time": job(created_at="yesterday"),
    "time a number": job(created_at=1_700_000_000),
    "time out of range": job(created_at="9999-12-31T23:59:59-23:59"),
    "no action": without("action"),
    "no job": without("workflow_job"),
    "no job id": without("workflow_job", "id"),
    "no labels": without("workflow_job", "labels"),
    "no repository": without("repository"),
    "no owner": without("repository", "owner"),
    "no full name": without("repository", "full_name"),
    "no installation": without("installation"),
    "owner of a strange type": json.dumps(
        job_payload(repository={"full_name": "a/b", "owner": {"id": 1, "login": "a", "type": 7}})
    ).encode(),
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
async def test_a_payload_that_github_would_not_send_is_refused_with_a_sentence(
    github: Sender, database: Database, body: bytes
) -> None:
    answer = await github.send(body)
    assert answer.status_code == 400
    assert len(answer.json()["error"]) > 10
    assert await counts(database) == (0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-GitHub-Event", None),
        ("X-GitHub-Event", "Workflow Job"),
        ("X-GitHub-Event", "e" * 101),
        ("X-GitHub-Delivery", None),
        ("X-GitHub-Delivery", ""),
        ("X-GitHub-Delivery", "d" * 101),
        ("X-GitHub-Delivery", "'; DROP TABLE jobs"),
        ("X-GitHub-Hook-Installation-Target-ID", "<script>"),
    ],
)
async def test_a_header_that_github_would_not_send_is_refused_by_its_name(
    github: Sender, database: Database, name: str, value: str | None
) -> None:
    answer = await github.send(job_payload(), headers={name: value})
    assert answer.status_code == 400
    assert name in answer.json()["error"]
    assert await counts(database) == (0, 0)


@pytest.mark.parametrize(
    "body", [b"payload=%FF", b"other=1", b"payload=1&payload=2", b"\xff", b"&" * 50 + b"a=1" * 9]
)
async def test_a_form_without_one_readable_payload_is_refused(github: Sender, body: bytes) -> None:
    form: dict[str, str | None] = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await github.send(body, headers=form)).status_code == 400


# ---- the property

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(["\x00", "\ud800", "x" * 3_000, "queued", "0001-01-01T00:00:00Z", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every field."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))


FIELDS = sorted(
    {path for action in ("queued", "in_progress", "completed") for path in places(job_payload(action))}
)
REMOVED = object()


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A valid payload in which one to three fields are gone or hold something else."""
    payload = copy.deepcopy(
        job_payload(draw(st.sampled_from(["queued", "in_progress", "completed", "waiting"])))
    )
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(FIELDS))
        place: Any = payload
        for key in path[:-1]:
            place = place.get(key) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            continue
        value = draw(st.just(REMOVED) | json_values)
        if value is REMOVED:
            place.pop(path[-1], None)
        else:
            place[path[-1]] = value
    return payload


def test_whatever_is_changed_in_a_payload_it_is_taken_whole_or_refused(databases: Databases) -> None:
    """One server and one loop for all examples; what is accepted leaves its event, what is refused nothing."""
    with asyncio.Runner() as runner:
        url = runner.run(databases.migrated())
        opening = opened(url)
        database = runner.run(opening.__aenter__())
        sending = receiving(database)
        github = runner.run(sending.__aenter__())

        async def check(body: bytes) -> None:
            await clear(database)
            answer = await github.send(body, headers={"X-GitHub-Delivery": a_guid()})
            jobs, events = await counts(database)
            if answer.status_code == 400:
                assert (jobs, events) == (0, 0)
            else:
                assert answer.status_code == 202
                assert events == 1
                stored = answer.json()["outcome"] in ("job_stored", "job_marked_running")
                assert jobs == (1 if stored else 0)

        @examples(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
        @given(payload=mutated())
        def payloads(payload: dict[str, Any]) -> None:
            runner.run(check(json.dumps(payload).encode()))

        @examples(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
        @given(start=st.integers(0, 1_000), bytes_=st.binary(max_size=8))
        def bodies(start: int, bytes_: bytes) -> None:
            body = json.dumps(job_payload()).encode()
            runner.run(check(body[:start] + bytes_ + body[start + len(bytes_) :]))

        try:
            payloads()
            bodies()
        finally:
            runner.run(sending.__aexit__(None, None, None))
            runner.run(opening.__aexit__(None, None, None))
            runner.run(databases.drop(url))
