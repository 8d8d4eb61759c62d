"""What goes wrong: one thing at a time from a list, drawn by the seed, mended after a while."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

from controller.errors import ClusterError
from controller.simulators.cluster import Behaviour
from controller.simulators.cluster.objects import NODES
from controller.simulators.github.faults import Faults, Rule
from tests.systems import BOARD_LABEL, System

Mend = Callable[[], Awaitable[None]]

GITHUB = (
    "actions/generate-runner-jitconfig-for-(org|repo)",
    "actions/list-self-hosted-runners.*",
    "actions/delete-self-hosted-runner-from-(org|repo)",
    "actions/list-jobs-for-workflow-run",
    "actions/get-job-for-workflow-run",
    "apps/create-installation-access-token",
    "apps/list-webhook-deliveries",
    "actions/.*",
)
CLUSTER = (
    "create pods",
    "create secrets",
    "patch secrets",
    "patch pods",
    "list pods",
    "watch pods",
    "delete pods",
)
MIDDLE_OF_GITHUB = (  # requests between which a term may end
    "actions/generate-runner-jitconfig-for-(org|repo)",
    "actions/delete-self-hosted-runner-from-(org|repo)",
    "actions/list-self-hosted-runner.*",
    "actions/list-jobs-for-workflow-run",
)
MIDDLE_OF_CLUSTER = ("create pods", "create secrets", "patch secrets", "patch pods", "delete pods")
REST, CALM = 0.08, timedelta(minutes=25)
CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Trouble:
    """Breaks things at random and mends them again."""

    def __init__(
        self, system: System, rng: random.Random, boards: dict[str, str], excuse: Callable[[str], None]
    ) -> None:
        self._system = system
        self._rng = rng
        self._types = boards  # by name
        self._boards = list(boards)
        self._excuse = excuse  # a pod that we end ourselves
        self._numbers = itertools.count(1)
        self._mends: list[Mend] = []
        self._calm_until = system.clock.now()
        self.log: list[str] = []
        self._kinds: tuple[Callable[[], Awaitable[Mend | None]], ...] = (
            self._github_answers_badly,
            self._github_swallows_answers,
            self._webhooks_go_wrong,
            self._cluster_answers_badly,
            self._cluster_swallows_answers,
            self._watches_break,
            self._history_is_compacted,
            self._a_board_misbehaves,
            self._a_board_dies,
            self._a_board_is_cordoned,
            self._the_database_cuts_everybody_off,
            self._tokens_are_revoked,
            self._an_idle_runner_is_removed,
            self._a_term_ends_in_the_middle,
            self._a_pod_is_deleted,
            self._a_secret_is_deleted,
            self._a_board_is_joined_anew,
            self._deliveries_are_sent_again,
            self._a_repository_is_renamed,
            self._the_app_is_suspended,
            self._the_app_is_installed_anew,
            self._an_owner_is_renamed,
            self._runners_are_too_old,
            self._the_api_server_is_away,
        )

    async def strike(self) -> None:
        """Break one more thing; often mend another, and now and then everything for a while."""
        if self._system.clock.now() < self._calm_until:
            return
        if self._rng.random() < REST:
            await self.stop()
            self._calm_until = self._system.clock.now() + CALM
            self.log.append(f"{self._system.clock.now():%H:%M:%S} all is mended")
            return
        if self._mends and self._rng.random() < 0.5:
            await self._mends.pop(self._rng.randrange(len(self._mends)))()
        kind = self._rng.choice(self._kinds)
        self.log.append(f"{self._system.clock.now():%H:%M:%S} {kind.__name__.strip('_').replace('_', ' ')}")
        mend = await kind()
        if mend is not None:
            self._mends.append(mend)

    @property
    def at_peace(self) -> bool:
        """Whether nothing is broken that has yet to be mended."""
        return not self._mends

    async def stop(self) -> None:
        """Mend everything."""
        while self._mends:
            await self._mends.pop()()
        self._system.github.sim.faults.clear()
        self._system.cluster.faults.clear()

    async def _github_answers_badly(self) -> Mend:
        headers = {"retry-after": "30"} if self._rng.random() < 0.3 else {}
        status = self._rng.choice((500, 502, 503)) if not headers else self._rng.choice((403, 429))
        return self._github(status=status, headers=headers)

    async def _github_swallows_answers(self) -> Mend:
        return self._github(drop=self._rng.choice(("before", "after")))

    def _github(self, **how: object) -> Mend:
        faults = self._system.github.sim.faults
        rule = faults.add(operation=self._rng.choice(GITHUB), times=None, probability=0.5, **how)

        async def mend() -> None:
            faults.remove(rule.name)

        return mend

    async def _webhooks_go_wrong(self) -> Mend:
        faults = self._system.github.sim.faults.webhooks
        for kind in ("lose", "fail", "duplicate", "reorder", "delay"):
            setattr(faults, kind, self._rng.choice((0.0, 0.1, 0.3)))

        async def mend() -> None:
            faults.clear()

        return mend

    async def _cluster_answers_badly(self) -> Mend:
        return self._cluster(status=self._rng.choice((429, 500, 503)))

    async def _cluster_swallows_answers(self) -> Mend:
        return self._cluster(drop=self._rng.choice(("before", "after")))

    def _cluster(self, **how: object) -> Mend:
        faults = self._system.cluster.faults
        rule = faults.add(operation=self._rng.choice(CLUSTER), times=None, probability=0.5, **how)

        async def mend() -> None:
            faults.remove(rule.name)

        return mend

    async def _watches_break(self) -> None:
        self._system.cluster.drop_watches()

    async def _history_is_compacted(self) -> None:
        self._system.cluster.compact()
        self._system.cluster.drop_watches()

    async def _a_board_misbehaves(self) -> Mend:
        name, cluster = self._rng.choice(self._boards), self._system.cluster
        how = self._rng.choice(
            (
                Behaviour(crash=1),
                Behaviour(hang=True),
                Behaviour(never_exits=True),
                Behaviour(fail_to_pull="*"),
                Behaviour(stop_time=timedelta(hours=1)),
            )
        )
        cluster.set_board_behaviour(name, how)

        async def mend() -> None:
            if self._there(name):
                cluster.set_board_behaviour(name, Behaviour())

        return mend

    async def _a_board_dies(self) -> Mend:
        name, cluster = self._rng.choice(self._boards), self._system.cluster
        (cluster.cut_power if self._rng.random() < 0.5 else cluster.kill_kubelet)(name)

        async def mend() -> None:
            if self._there(name):
                cluster.revive_kubelet(name)

        return mend

    async def _a_board_is_cordoned(self) -> Mend:
        name, cluster = self._rng.choice(self._boards), self._system.cluster
        cluster.cordon(name)

        async def mend() -> None:
            if self._there(name):
                cluster.uncordon(name)

        return mend

    async def _the_database_cuts_everybody_off(self) -> None:
        await self._system.rows(CUT_OFF)

    async def _tokens_are_revoked(self) -> None:
        self._system.github.sim.revoke_tokens(self._an_owner())

    async def _an_idle_runner_is_removed(self) -> None:
        world = self._system.github.sim.world
        idle = [r for r in world.runners.values() if r.job is None and r.offered is None and r.session_at]
        if idle:
            self._system.github.sim.remove_runner(self._rng.choice(idle).name)

    async def _a_term_ends_in_the_middle(self) -> Mend:
        """The next request of a kind is held, meanwhile the database forgets who led; then it goes on."""
        at_github = self._rng.random() < 0.5
        faults = self._system.github.sim.faults if at_github else self._system.cluster.faults
        operation = self._rng.choice(MIDDLE_OF_GITHUB if at_github else MIDDLE_OF_CLUSTER)
        rule = faults.add(operation=operation, hold=self._rng.choice(("before", "after")), times=1)
        cutting = asyncio.create_task(self._cut_off_once_held(faults, rule))

        async def mend() -> None:
            cutting.cancel()
            await asyncio.gather(cutting, return_exceptions=True)
            faults.remove(rule.name)

        return mend

    async def _cut_off_once_held(self, faults: Faults, rule: Rule) -> None:
        await rule.wait_held()
        try:
            await self._system.rows(CUT_OFF)
        finally:
            faults.release(rule.name, drop=self._rng.random() < 0.5)

    async def _a_pod_is_deleted(self) -> None:
        """By a person, or by whoever drains its node."""
        pods = [pod["metadata"]["name"] for pod in self._system.cluster.pods()]
        if pods:
            name = self._rng.choice(pods)
            self._excuse(name)
            try:
                await self._system.controller.cluster.delete_pod(name)
            except ClusterError:
                self.log.append(f"{name} could not be deleted")

    async def _a_secret_is_deleted(self) -> None:
        try:
            secrets = sorted(await self._system.controller.cluster.list_secrets())
            if secrets:
                await self._system.controller.cluster.delete_secret(self._rng.choice(secrets))
        except ClusterError:
            self.log.append("no Secret could be deleted")

    async def _a_board_is_joined_anew(self) -> Mend | None:
        """Under its old name."""
        name, cluster = self._rng.choice(self._boards), self._system.cluster
        if not self._there(name):
            return None
        cluster.remove_board(name)

        async def mend() -> None:
            cluster.add_board(name, {BOARD_LABEL: self._types[name]})

        if self._rng.random() < 0.5:
            await mend()
            return None
        self._boards.remove(name)

        async def mend_later() -> None:
            await mend()
            self._boards.append(name)

        return mend_later

    async def _deliveries_are_sent_again(self) -> None:
        """Whatever their age, under the same GUIDs."""
        sim = self._system.github.sim
        sent = list(sim.world.deliveries.values())
        for delivery in self._rng.sample(sent, min(10, len(sent))):
            sim.webhooks.redeliver(delivery)

    async def _a_repository_is_renamed(self) -> None:
        sim = self._system.github.sim
        old = self._rng.choice(sorted(sim.world.repositories))
        sim.rename_repository(old, f"{old.partition('/')[2].partition('-')[0]}-{next(self._numbers)}")

    async def _the_app_is_suspended(self) -> Mend:
        sim, login = self._system.github.sim, self._an_owner()
        sim.suspend(login)
        owner = sim.world.accounts[login]

        async def mend() -> None:
            sim.unsuspend(owner.login)

        return mend

    async def _the_app_is_installed_anew(self) -> None:
        """Under another id; whoever suspended the old one has nothing to let back in."""
        sim, login = self._system.github.sim, self._an_owner()
        sim.uninstall(login)
        sim.reinstall(login)

    async def _an_owner_is_renamed(self) -> None:
        self._system.github.sim.rename_account(self._an_owner(), f"owner-{next(self._numbers)}")

    async def _runners_are_too_old(self) -> Mend:
        sim, login = self._system.github.sim, self._an_owner()
        sim.refuse_runner_versions(login, "9.0.0")
        owner = sim.world.accounts[login]

        async def mend() -> None:
            sim.refuse_runner_versions(owner.login, None)

        return mend

    async def _the_api_server_is_away(self) -> Mend:
        faults = self._system.cluster.faults
        rule = faults.add(status=503, times=None)
        self._system.cluster.drop_watches()

        async def mend() -> None:
            faults.remove(rule.name)

        return mend

    def _an_owner(self) -> str:
        return self._rng.choice(sorted(self._system.github.sim.world.accounts))

    def _there(self, name: str) -> bool:
        return self._system.cluster.store.find(NODES, "", name) is not None


def soon(rng: random.Random) -> timedelta:
    """How long until the next strike."""
    return timedelta(seconds=rng.uniform(20, 240))
