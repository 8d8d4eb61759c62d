"""What goes wrong: one thing at a time from a list, drawn by the seed, mended after a while."""

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from controller.simulators.cluster import Behaviour
from tests.systems import System

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
CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Trouble:
    """Breaks things at random and mends them again."""

    def __init__(self, system: System, rng: random.Random, boards: list[str], repos: Sequence[str]) -> None:
        self.repos = list(repos)  # as they are called now
        self._system = system
        self._rng = rng
        self._boards = boards
        self._mends: list[Mend] = []
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
            self._an_owner_suspends_the_app,
            self._versions_are_refused,
            self._a_repository_is_renamed,
            self._the_api_server_is_away,
        )

    async def strike(self) -> None:
        """Break one more thing; often mend another."""
        if self._mends and self._rng.random() < 0.5:
            await self._mends.pop(self._rng.randrange(len(self._mends)))()
        kind = self._rng.choice(self._kinds)
        self.log.append(f"{self._system.clock.now():%H:%M:%S} {kind.__name__.strip('_').replace('_', ' ')}")
        mend = await kind()
        if mend is not None:
            self._mends.append(mend)

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
            )
        )
        cluster.set_board_behaviour(name, how)

        async def mend() -> None:
            cluster.set_board_behaviour(name, Behaviour())

        return mend

    async def _a_board_dies(self) -> Mend:
        name, cluster = self._rng.choice(self._boards), self._system.cluster
        (cluster.cut_power if self._rng.random() < 0.5 else cluster.kill_kubelet)(name)

        async def mend() -> None:
            cluster.revive_kubelet(name)

        return mend

    async def _a_board_is_cordoned(self) -> Mend:
        name, cluster = self._rng.choice(self._boards), self._system.cluster
        cluster.cordon(name)

        async def mend() -> None:
            cluster.uncordon(name)

        return mend

    async def _the_database_cuts_everybody_off(self) -> None:
        await self._system.rows(CUT_OFF)

    async def _an_owner_suspends_the_app(self) -> Mend:
        login, sim = self._rng.choice(("acme", "jane")), self._system.github.sim
        if sim.world.accounts[login].installation.suspended_at is None:
            sim.suspend(login)

        async def mend() -> None:
            if sim.world.accounts[login].installation.suspended_at is not None:
                sim.unsuspend(login)

        return mend

    async def _versions_are_refused(self) -> Mend:
        login, sim = self._rng.choice(("acme", "jane")), self._system.github.sim
        sim.refuse_runner_versions(login, "9.0.0")

        async def mend() -> None:
            sim.refuse_runner_versions(login, None)

        return mend

    async def _a_repository_is_renamed(self) -> None:
        before = self._rng.choice(self.repos)
        owner, name = before.split("/")
        self._system.github.sim.rename_repository(before, f"{name}x")
        self.repos[self.repos.index(before)] = f"{owner}/{name}x"

    async def _the_api_server_is_away(self) -> Mend:
        faults = self._system.cluster.faults
        rule = faults.add(status=503, times=None)
        self._system.cluster.drop_watches()

        async def mend() -> None:
            faults.remove(rule.name)

        return mend

    async def _tokens_are_revoked(self) -> None:
        self._system.github.sim.revoke_tokens(self._rng.choice(("acme", "jane")))

    async def _an_idle_runner_is_removed(self) -> None:
        world = self._system.github.sim.world
        idle = [r for r in world.runners.values() if r.job is None and r.offered is None and r.session_at]
        if idle:
            self._system.github.sim.remove_runner(self._rng.choice(idle).name)


def soon(rng: random.Random) -> timedelta:
    """How long until the next strike."""
    return timedelta(seconds=rng.uniform(20, 240))
