"""What import-linter cannot see: clocks that are read through datetime, folder names, and module sizes."""

import ast
from collections.abc import Iterator
from pathlib import Path

CONTROLLER = Path(__file__).resolve().parents[2] / "controller"
LONGEST_MODULE = 400
CLOCK_READS = frozenset({"now", "utcnow", "today"})
NAMES_THAT_SAY_NOTHING = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "managers"})


def sources(folder: Path) -> list[Path]:
    return sorted(folder.glob("**/*.py"))


def clock_reads(path: Path) -> Iterator[str]:
    """The calls such as `datetime.now()` in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="datetime" | "date"), attr=attr)):
                if attr in CLOCK_READS:
                    yield f"{path.relative_to(CONTROLLER)}:{node.lineno} {attr}()"


def test_what_is_decided_never_reads_a_clock() -> None:
    pure = [*sources(CONTROLLER / "domain"), *sources(CONTROLLER / "decide")]
    assert pure
    assert [read for path in pure for read in clock_reads(path)] == []


def test_only_clocks_read_the_clock() -> None:
    reads = [read for path in sources(CONTROLLER) for read in clock_reads(path)]
    assert [read for read in reads if not read.startswith("gateways/clock.py:")] == []


def test_no_folder_or_module_has_a_name_that_says_nothing() -> None:
    assert [str(path) for path in CONTROLLER.rglob("*") if path.stem in NAMES_THAT_SAY_NOTHING] == []


def test_no_module_is_too_long_to_read() -> None:
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources(CONTROLLER)}
    assert {path: length for path, length in lengths.items() if length > LONGEST_MODULE} == {}
