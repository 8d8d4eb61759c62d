"""The controller and the receiver as processes of their own, as they run in a cluster."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from hack.cluster.control_plane import free_ports
from hack.cluster.processes import die_with_parent

START_LIMIT = 120.0
STOP_LIMIT = 40.0
LOOK = 0.1
PROGRAM = Path(sys.executable).parent / "switchboard"


@asynccontextmanager
async def running(
    command: str, settings: Mapping[str, Any], environment: Mapping[str, str], folder: Path
) -> AsyncIterator[str]:
    """Run one command of the program with these settings; its base URL, once it answers there."""
    (port,) = free_ports(1)
    config = folder / f"{command}.yaml"
    config.write_text(yaml.safe_dump({**settings, "web": {"listen": f"127.0.0.1:{port}"}}), encoding="utf-8")
    url = f"http://127.0.0.1:{port}"
    log = folder / f"{command}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            command,
            "--config",
            config,
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent,
        )
    try:
        async with asyncio.timeout(START_LIMIT):
            while True:
                if await _answers(url, process, log):
                    break
                await asyncio.sleep(LOOK)
        yield url
        assert process.returncode is None, f"{command} ended:\n{_tail(log)}"
    except BaseException:
        print(f"--- {command} wrote last:\n{_tail(log)}")
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_LIMIT):
            code = await process.wait()
    assert code == 0, f"{command} ended with {code}:\n{_tail(log)}"


async def _answers(url: str, process: asyncio.subprocess.Process, log: Path) -> bool:
    assert process.returncode is None, f"it ended:\n{_tail(log)}"
    async with httpx.AsyncClient() as client:
        try:
            return (await client.get(f"{url}/health")).status_code == 200
        except httpx.TransportError:
            return False


def _tail(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
