"""Self-hosted runners: registering, listing, finding and deleting them in an organization or a repository."""

from collections.abc import Callable
from datetime import timedelta

from controller.domain.jobs import EntityType, LabelSet, Scope
from controller.domain.sightings import Runner
from controller.errors import GitHubNotFound, InstallationGone, RunnerBusy
from controller.gateways.github.answers import Item
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.groups import DEFAULT_GROUP, RunnerGroups
from controller.gateways.github.pages import PER_PAGE, read_all
from controller.gateways.github.paths import owner_path
from controller.gateways.github.refusals import refusal
from controller.ports import JitRunner, Secret


class Runners:
    """The runner operations of the gateway."""

    def __init__(self, asking: Callable[[Scope], Ask], groups: RunnerGroups, deadline: timedelta) -> None:
        self._asking = asking
        self._groups = groups
        self._deadline = deadline

    async def create_jit(self, scope: Scope, name: str, labels: LabelSet, group_id: int) -> JitRunner:
        """Register a runner; sent once, because after a lost answer the name is taken."""
        # Repositories have no groups: their runners are always in the default one.
        group = group_id if scope.entity.type is EntityType.ORGANIZATION else DEFAULT_GROUP
        body = {"name": name, "runner_group_id": group, "labels": list(labels)}
        path = f"{owner_path(scope)}/actions/runners/generate-jitconfig"
        answer = await self._asking(scope)(
            Call("create_jit_runner", "POST", path, body=body), also={404, 422}
        )
        if answer.status in (404, 422):
            self._groups.forget(scope.installation_id)  # the group may be what GitHub did not find
            raise refusal(answer)
        item = answer.item()
        return JitRunner(read_runner(item.item("runner")), Secret(item.text("encoded_jit_config")))

    async def list_all(self, scope: Scope) -> tuple[Runner, ...]:
        """All runners of the scope; for organizations those of our group."""
        path = f"{owner_path(scope)}/actions/runners"
        group_id = await self._groups.ensure(scope)
        if group_id != DEFAULT_GROUP:
            path = f"{owner_path(scope)}/actions/runner-groups/{group_id}/runners"
        call = Call("list_runners", "GET", path, {"per_page": PER_PAGE})
        try:
            items = await read_all(self._asking(scope), call, "runners", self._deadline)
        except InstallationGone:
            raise
        except GitHubNotFound:
            self._groups.forget(scope.installation_id)
            raise
        return tuple(read_runner(item) for item in items)

    async def find(self, scope: Scope, name: str) -> Runner | None:
        """The runner of exactly that name; GitHub's filter is only a first sieve."""
        path = f"{owner_path(scope)}/actions/runners"
        call = Call("find_runner", "GET", path, {"name": name, "per_page": PER_PAGE})
        for item in await read_all(self._asking(scope), call, "runners", self._deadline):
            if item.text("name") == name:
                return read_runner(item)
        return None

    async def delete(self, scope: Scope, runner_id: int) -> None:
        """Delete a runner; gone already is fine, busy is not."""
        call = Call("delete_runner", "DELETE", f"{owner_path(scope)}/actions/runners/{runner_id}")
        answer = await self._asking(scope)(call, also={404, 422})
        if answer.status == 422:
            raise refusal(answer, RunnerBusy)


def read_runner(item: Item) -> Runner:
    """Read one runner of an answer."""
    return Runner(
        id=item.integer("id"),
        name=item.text("name"),
        online=item.text("status") == "online",
        busy=item.flag("busy"),
        group_id=item.optional_integer("runner_group_id"),
        version=item.optional_text("version") or None,
    )
