"""The commands. Settings are read here; everything else is wired in `app`."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

from controller import __version__, app
from controller.demo import run_demo
from controller.doctor import run_doctor
from controller.domain.durations import parse_duration
from controller.errors import ConfigError, ControllerError
from controller.settings import Settings, environment, load_settings
from controller.telemetry.logs import setup_logs

DATABASE = frozenset({"DATABASE_URL"})
RECEIVER = DATABASE | {"GITHUB_WEBHOOK_SECRET"}
EXIT_CONFIG = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code is returned."""
    given = _parser().parse_args(arguments)
    setup_logs(given.log_format, given.log_level)
    try:
        return int(asyncio.run(given.run(given)))
    except ConfigError as error:
        print("The settings are wrong:", file=sys.stderr)
        for mistake in error.mistakes:
            print(f"  {mistake}", file=sys.stderr)
        return EXIT_CONFIG
    except ControllerError as error:
        print(f"switchboard: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="switchboard", description="Connects GitHub Actions jobs to RISC-V boards."
    )
    parser.add_argument("--version", action="version", version=f"switchboard {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _command(commands, "controller", "the reconciler, with pages, JSON and metrics", _serve(True, False))
    _command(commands, "webhook", "the receiver alone: POST /webhook", _serve(False, True))
    _command(commands, "all", "controller and receiver in one process", _serve(True, True))
    migrate = _command(commands, "migrate", "apply the database migrations", _migrate)
    migrate.add_argument("--wait", action="store_true", help="wait for the database to come up")
    _command(commands, "plan", "dry run: what the next iteration would do", _plan)
    explain = _command(commands, "explain", "why a job is not running", _explain)
    explain.add_argument("job", metavar="JOB", help="the job's id, or its address on GitHub")
    _command(commands, "doctor", "check everything that must be right before a job can run", _doctor)
    boards = _command(commands, "boards", "what the controller wrote onto the boards' nodes", _boards)
    boards.add_argument(
        "--withdraw", action="store_true", required=True, help="take the slots of boards.advertise off again"
    )
    demo = _command(commands, "demo", "the whole system on embedded parts", _demo)
    demo.add_argument("--speed", type=_speed, default=10.0, help="how many times as fast (default 10)")
    demo.add_argument("--for", dest="duration", type=_duration, help="end after this long, e.g. 60s")
    demo.add_argument("--port", type=int, default=8080, help="the pages' port (default 8080; 0: any)")
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    what: str,
    run: Callable[[argparse.Namespace], Awaitable[int]],
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=what, description=what)
    command.add_argument("--config", type=Path, metavar="FILE", help="settings (else $SWITCHBOARD_CONFIG)")
    default = "console" if name in ("plan", "demo", "migrate", "explain", "doctor", "boards") else "json"
    command.add_argument("--log-format", choices=("json", "console"), default=default)
    command.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    command.set_defaults(run=run)
    return command


def _speed(text: str) -> float:
    speed = float(text)
    if not 0.1 <= speed <= 1000:
        raise argparse.ArgumentTypeError("expected a number from 0.1 to 1000")
    return speed


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _settings(given: argparse.Namespace, needs: frozenset[str]) -> Settings:
    return load_settings(given.config, environment(), needs=needs)


def _serve(controller: bool, receiver: bool) -> Callable[[argparse.Namespace], Awaitable[int]]:
    async def run(given: argparse.Namespace) -> int:
        settings = _settings(given, RECEIVER if receiver else DATABASE)
        return await app.serve(settings, app.Parts(controller=controller, receiver=receiver))

    return run


async def _migrate(given: argparse.Namespace) -> int:
    return await app.migrate_database(_settings(given, DATABASE), wait=given.wait)


async def _plan(given: argparse.Namespace) -> int:
    return await app.print_plan(_settings(given, DATABASE))


async def _explain(given: argparse.Namespace) -> int:
    return await app.print_explanation(_settings(given, DATABASE), given.job)


async def _doctor(given: argparse.Namespace) -> int:
    return await run_doctor(_settings(given, DATABASE))


async def _boards(given: argparse.Namespace) -> int:
    return await app.withdraw_boards(_settings(given, frozenset()))


async def _demo(given: argparse.Namespace) -> int:
    return await run_demo(speed=given.speed, duration=given.duration, port=given.port)


if __name__ == "__main__":
    sys.exit(main())
