"""Real clusters for tests: what is missing is one clear line and a skip, and in CI a failure."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from hack.cluster.client import ROOT
from tests.processes import Process, descendants
from tests.waiting import until

OWN = "a cluster of our own, whose parts may be stopped"
PATIENCE = 120.0  # seconds: a busy machine takes its time to end processes
ASK = """
from hack.cluster.client import BoardSpec, a_cluster
import json, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
with a_cluster({arguments}) as cluster:
    print(json.dumps([str(cluster.folder), str(cluster.kubeconfig)]), flush=True)
    time.sleep(600)
"""


def leave_out(missing: str, needs: str = "a real Kubernetes") -> NoReturn:
    """Skip the test that needs what is missing; where $CI is set nothing may be left out."""
    line = f"needs {needs}; missing: {missing}"
    if os.environ.get("CI"):
        pytest.fail(line, pytrace=False)
    pytest.skip(line)


@dataclass(frozen=True, slots=True)
class Asking:
    """A process that asked for a cluster and waits, and where the cluster is."""

    process: subprocess.Popen[bytes]
    folder: Path
    kubeconfig: Path

    def started(self) -> set[Process]:
        """All that was started for it."""
        return descendants(self.process.pid)

    async def all_gone(self, processes: set[Process]) -> None:
        """Wait until none of them lives and nothing lies around."""

        async def holds() -> bool:
            return not any(process.alive for process in processes) and not self.folder.exists()

        await until(holds, PATIENCE)


@contextmanager
def asking(arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Asking]:
    """Have a process ask for a cluster with these arguments; it is up when the block is entered."""
    command = [sys.executable, "-c", ASK.format(arguments=arguments)]
    given = {**os.environ, **(environment or {})}
    with subprocess.Popen(
        command, cwd=ROOT, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            folder, kubeconfig = json.loads(process.stdout.readline())
            yield Asking(process, Path(folder), Path(kubeconfig))
        finally:
            process.kill()
