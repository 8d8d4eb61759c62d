"""Creating, changing and deleting objects: nothing here needs a scheduler or a kubelet."""

import asyncio

import pytest

from tests.contract.cluster.conftest import Api
from tests.contract.cluster.objects import Json, a_pod, a_secret


async def test_without_the_token_nothing_is_answered(api: Api) -> None:
    answer = await api.client.get(api.path("pods"), headers={"authorization": "Bearer wrong"})
    assert answer.status_code == 401
    assert answer.json()["reason"] == "Unauthorized"


async def test_the_version_is_told(api: Api) -> None:
    assert (await api.client.get("/version")).json()["major"] == "1"


async def test_a_created_pod_has_uid_time_version_and_defaults(api: Api) -> None:
    pod = await api.create("pods", a_pod("one"))
    metadata = pod["metadata"]
    assert metadata["uid"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 0
    assert pod["status"]["phase"] == "Pending"
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30


async def test_a_name_is_taken_only_once(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    answer = await api.client.post(api.path("pods"), json=a_pod("one"))
    assert (answer.status_code, answer.json()["reason"]) == (409, "AlreadyExists")


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        (a_pod("Bad_Name"), "metadata.name"),
        (a_pod("one", image=""), "spec.containers[0].image"),
        (a_pod("one", restartPolicy="Sometimes"), "spec.restartPolicy"),
        (a_pod("one", activeDeadlineSeconds=0), "spec.activeDeadlineSeconds"),
        (a_pod("one", labels={"a": "b c"}), "metadata.labels"),
    ],
)
async def test_mistakes_are_422_and_name_the_field(api: Api, pod: Json, field: str) -> None:
    answer = await api.client.post(api.path("pods"), json=pod)
    assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")
    assert field in [cause["field"] for cause in answer.json()["details"]["causes"]]


async def test_what_cannot_be_decoded_is_400(api: Api) -> None:
    pod = a_pod("one", activeDeadlineSeconds="soon")
    assert (await api.client.post(api.path("pods"), json=pod)).status_code == 400


async def test_a_namespace_must_exist(api: Api) -> None:
    answer = await api.client.post("/api/v1/namespaces/nowhere/pods", json=a_pod("one"))
    assert answer.status_code == 404


async def test_a_dry_run_checks_and_stores_nothing(api: Api) -> None:
    await api.create("pods", a_pod("one"), dryRun="All")
    assert await api.get("pods", "one") is None
    answer = await api.client.post(api.path("pods"), json=a_pod("Bad_Name"), params={"dryRun": "All"})
    assert answer.status_code == 422


async def test_versions_rise_over_all_kinds(api: Api) -> None:
    versions = []
    for number in range(3):
        versions.append((await api.create("pods", a_pod(f"p-{number}")))["metadata"]["resourceVersion"])
        versions.append((await api.create("secrets", a_secret(f"s-{number}")))["metadata"]["resourceVersion"])
    numbers = [int(version) for version in versions]
    assert numbers == sorted(set(numbers))


async def test_a_deadline_may_be_lowered_and_never_raised(api: Api) -> None:
    await api.create("pods", a_pod("one", activeDeadlineSeconds=100))
    assert (await api.patch("pods", "one", {"spec": {"activeDeadlineSeconds": 1}})).status_code == 200
    for worse in (2, None):
        assert (await api.patch("pods", "one", {"spec": {"activeDeadlineSeconds": worse}})).status_code == 422


@pytest.mark.parametrize(
    "change", [{"restartPolicy": "Always"}, {"nodeSelector": {"a": "b"}}, {"hostNetwork": True}]
)
async def test_the_rest_of_a_spec_is_fixed(api: Api, change: Json) -> None:
    await api.create("pods", a_pod("one"))
    assert (await api.patch("pods", "one", {"spec": change})).status_code == 422


async def test_a_patch_that_changes_nothing_makes_no_version(api: Api) -> None:
    pod = await api.create("pods", a_pod("one"))
    answer = await api.patch("pods", "one", {"metadata": {"annotations": {}}})
    assert answer.json()["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]


async def test_the_three_patches(api: Api) -> None:
    await api.create("secrets", a_secret("one", labels={"a": "1"}))
    await api.patch("secrets", "one", {"metadata": {"labels": {"b": "2"}}}, "merge")
    await api.patch("secrets", "one", {"metadata": {"labels": {"c": "3"}}}, "strategic-merge")
    step = {"op": "add", "path": "/metadata/labels/d", "value": "4"}
    answer = await api.patch("secrets", "one", [step], "json")
    assert answer.json()["metadata"]["labels"] == {"a": "1", "b": "2", "c": "3", "d": "4"}
    assert (await api.patch("secrets", "one", {}, "unheard-of")).status_code == 415


async def test_a_patch_or_put_with_an_old_version_is_a_conflict(api: Api) -> None:
    secret = await api.create("secrets", a_secret("one"))
    patch = {"metadata": {"labels": {"a": "1"}, "resourceVersion": secret["metadata"]["resourceVersion"]}}
    assert (await api.patch("secrets", "one", patch)).status_code == 200
    patch["metadata"]["labels"] = {"a": "2"}
    assert (await api.patch("secrets", "one", patch)).status_code == 409
    assert (await api.client.put(api.path("secrets", "one"), json=secret)).status_code == 409


async def test_status_is_changed_only_by_its_own_address(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    await api.patch("pods", "one", {"status": {"message": "hello"}})
    assert "message" not in (await api.get("pods", "one") or {})["status"]
    headers = {"content-type": "application/merge-patch+json"}
    body = {"status": {"message": "hello"}}
    await api.client.patch(api.path("pods", "one", "status"), json=body, headers=headers)
    assert (await api.get("pods", "one") or {})["status"]["message"] == "hello"


async def test_secrets_take_plain_text_and_give_base64(api: Api) -> None:
    secret = await api.create("secrets", a_secret("one", key="value"))
    assert secret["data"] == {"key": "dmFsdWU="}
    assert "stringData" not in secret


async def test_a_pod_without_a_node_is_deleted_at_once(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    assert (await api.client.delete(api.path("pods", "one"))).status_code == 200
    assert await api.get("pods", "one") is None
    assert (await api.client.delete(api.path("pods", "one"))).status_code == 404


async def test_a_bound_pod_is_deleted_with_grace_and_by_force(api: Api) -> None:
    await api.create("pods", a_pod("one", nodeName="no-such-node"))
    answer = await api.client.delete(api.path("pods", "one"))
    assert answer.json()["metadata"]["deletionGracePeriodSeconds"] == 30
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    await api.client.request("DELETE", api.path("pods", "one"), json=body)
    assert await api.get("pods", "one") is None


async def test_a_pod_without_a_node_has_an_empty_log_and_one_whose_node_is_gone_has_none(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    await api.create("pods", a_pod("two", nodeName="no-such-node"))
    empty = await api.client.get(api.path("pods", "one", "log"))
    assert (empty.status_code, empty.content) == (204, b"")
    none = await api.client.get(api.path("pods", "two", "log"))
    assert (none.status_code, none.json()["reason"]) == (404, "NotFound")


async def test_the_generation_counts_what_was_asked_of_a_pod(api: Api) -> None:
    pod = await api.create("pods", a_pod("one", activeDeadlineSeconds=100))
    answers = [
        await api.patch("pods", "one", {"metadata": {"labels": {"a": "b"}}}),
        await api.patch("pods", "one", {"spec": {"activeDeadlineSeconds": 1}}),
        await api.client.delete(api.path("pods", "one")),
    ]
    generations = [answer.json()["metadata"]["generation"] for answer in answers]
    assert (pod["metadata"]["generation"], generations) == (1, [1, 2, 3])


async def test_a_deleted_pod_is_answered_as_marked(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    gone = (await api.client.delete(api.path("pods", "one"))).json()["metadata"]
    assert (gone["deletionGracePeriodSeconds"], "deletionTimestamp" in gone) == (0, True)


async def test_a_delete_for_another_uid_is_a_conflict(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    body = {"preconditions": {"uid": "another"}}
    answer = await api.client.request("DELETE", api.path("pods", "one"), json=body)
    assert answer.status_code == 409


async def test_two_creates_at_once_make_one_object(api: Api) -> None:
    answers = await asyncio.gather(*(api.client.post(api.path("pods"), json=a_pod("one")) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]


async def test_unknown_paths_and_methods_are_answered_as_such(api: Api) -> None:
    assert (await api.client.get(api.path("gadgets"))).status_code == 404
    assert (await api.client.post(api.path("pods", "one"), json={})).status_code == 405
