"""What goes with its owner, and what someone with few rights may do."""

from typing import Any

import pytest

from tests.contract.cluster.conftest import Api
from tests.contract.cluster.objects import a_pod, a_secret, owner_of
from tests.waiting import until

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def gone(api: Api, plural: str, name: str) -> None:
    async def holds() -> bool:
        return await api.get(plural, name) is None

    await until(holds)


async def test_what_a_pod_owns_goes_with_it(living_api: Api) -> None:
    pod = await living_api.create("pods", a_pod("one"))
    await living_api.create("secrets", a_secret("one", owner=pod))
    await living_api.create("secrets", a_secret("two"))
    assert await living_api.get("secrets", "one") is not None
    await living_api.client.delete(living_api.path("pods", "one"))
    await gone(living_api, "secrets", "one")
    assert await living_api.get("secrets", "two") is not None


async def test_what_is_given_to_an_owner_that_is_gone_goes_too(living_api: Api) -> None:
    pod = await living_api.create("pods", a_pod("one"))
    await living_api.client.delete(living_api.path("pods", "one"))
    await living_api.create("secrets", a_secret("one"))
    patch = {"metadata": {"ownerReferences": [owner_of(pod)]}}
    assert (await living_api.patch("secrets", "one", patch)).status_code == 200
    await gone(living_api, "secrets", "one")


@pytest.mark.parametrize("missing", ["apiVersion", "kind", "name", "uid"])
async def test_an_owner_must_be_named_in_full(api: Api, missing: str) -> None:
    pod = await api.create("pods", a_pod("one"))
    owner = {key: value for key, value in owner_of(pod).items() if key != missing}
    await api.create("secrets", a_secret("one"))
    answer = await api.patch("secrets", "one", {"metadata": {"ownerReferences": [owner]}})
    assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")


async def test_what_is_not_granted_is_forbidden_and_says_who_what_and_where(api: Api) -> None:
    headers = await api.limited(["get", "list"], ["pods"])
    await api.create("pods", a_pod("one"))
    assert (await api.client.get(api.path("pods"), headers=headers)).status_code == 200
    refused = await api.client.get(api.path("secrets"), headers=headers)
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
    assert refused.json()["message"] == (
        f'secrets is forbidden: User "system:serviceaccount:{api.namespace}:limited" cannot list resource '
        f'"secrets" in API group "" in the namespace "{api.namespace}"'
    )
    assert refused.json()["details"] == {"kind": "secrets"}


async def test_a_right_covers_its_verb_its_resource_and_its_namespace_only(api: Api) -> None:
    headers = await api.limited(["get", "create"], ["pods"])
    await api.create("pods", a_pod("one"))
    client = api.client
    for method, path in [
        ("DELETE", api.path("pods", "one")),
        ("GET", api.path("pods", "one", "log")),
        ("GET", "/api/v1/namespaces/default/pods/one"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/pods"),
    ]:
        answer = await client.request(method, path, headers=headers)
        assert (method, path, answer.status_code) == (method, path, 403)
    created = await client.post(api.path("pods"), json=a_pod("two"), headers=headers)
    assert created.status_code == 201


async def test_everyone_may_ask_what_he_may_do(api: Api) -> None:
    headers = await api.limited(["create"], ["pods"])

    async def allowed(**about: Any) -> bool:
        body = {"spec": {"resourceAttributes": {"namespace": api.namespace, **about}}}
        answer = await api.client.post(REVIEWS, json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return bool(answer.json()["status"]["allowed"])

    assert await allowed(verb="create", resource="pods")
    assert not await allowed(verb="delete", resource="pods")
    assert not await allowed(verb="get", resource="pods", subresource="log")
    assert not await allowed(verb="create", resource="pods", namespace="default")
