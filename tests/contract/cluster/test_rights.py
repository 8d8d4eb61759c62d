"""Rights: what a SelfSubjectAccessReview says is what requests meet, and a dry run makes nothing."""

from controller.simulators.cluster import ClusterSimulator
from tests.contract.cluster.conftest import Api
from tests.contract.cluster.objects import Json, a_pod

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def reviewed(api: Api, verb: str, resource: str, subresource: str = "") -> Json:
    """The answer to a question about our own rights."""
    attributes = {"namespace": api.namespace, "group": "", "verb": verb, "resource": resource}
    if subresource:
        attributes["subresource"] = subresource
    body = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await api.client.post(REVIEWS, json=body)
    assert answer.status_code == 201
    found: Json = answer.json()
    return found


async def test_a_review_repeats_the_question_and_says_what_is_allowed(api: Api) -> None:
    review = await reviewed(api, "get", "pods", "log")
    assert review["kind"] == "SelfSubjectAccessReview"
    assert review["spec"]["resourceAttributes"]["subresource"] == "log"
    assert review["status"]["allowed"] is True


async def test_a_question_without_a_resource_is_refused(api: Api) -> None:
    answer = await api.client.post(REVIEWS, json={"kind": "SelfSubjectAccessReview", "spec": {}})
    assert answer.status_code in (400, 422)


async def test_what_the_review_denies_is_403(api: Api, sim: ClusterSimulator) -> None:
    sim.deny("create pods")
    assert (await reviewed(api, "create", "pods"))["status"]["allowed"] is False
    assert (await reviewed(api, "list", "pods"))["status"]["allowed"] is True
    answer = await api.client.post(api.path("pods"), json=a_pod("one"))
    assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")
    assert 'cannot create resource "pods" in API group ""' in answer.json()["message"]
    assert (await api.listed("pods"))["items"] == []


async def test_a_dry_run_judges_a_pod_and_makes_none(api: Api) -> None:
    answer = await api.client.post(api.path("pods"), json=a_pod("one"), params={"dryRun": "All"})
    assert answer.status_code == 201
    assert answer.json()["metadata"]["uid"]
    assert await api.get("pods", "one") is None
    bad = a_pod("one", restartPolicy="Sometimes")
    refused = await api.client.post(api.path("pods"), json=bad, params={"dryRun": "All"})
    assert refused.status_code == 422
    await api.create("pods", a_pod("one"))
    taken = await api.client.post(api.path("pods"), json=a_pod("one"), params={"dryRun": "All"})
    assert taken.status_code == 409
