"""Holds TRACEABILITY.md to the truth: the tests it names exist, run, and leave no sentence without proof."""

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
DOCUMENT = TESTS / "TRACEABILITY.md"
CLAIMS = "| sentence | tests |"
NOT_YET = "not yet"
TEST_ID = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence and what stands beside it."""

    line: int
    sentence: str
    proof: str

    @property
    def test_ids(self) -> list[str]:
        """The tests that are named as proof."""
        return TEST_ID.findall(self.proof)


@cache
def claims() -> tuple[Row, ...]:
    """The rows of every table of sentences and tests."""
    rows: list[Row] = []
    in_table = False
    for number, line in enumerate(DOCUMENT.read_text(encoding="utf-8").splitlines(), start=1):
        in_table = line == CLAIMS or (in_table and line.startswith("|"))
        if not in_table or line == CLAIMS or line.startswith("|---"):
            continue
        _, sentence, proof, _ = re.split(r"(?<!\\)\|", line)
        rows.append(Row(number, sentence.strip(), proof.strip()))
    return tuple(rows)


@cache
def collected() -> frozenset[str]:
    """The tests that would run here, without parameters: those marked to be skipped or to fail are left out."""
    options = ["-o", "addopts=-q", "-p", "no:randomly", "-m", "not skip and not skipif and not xfail"]
    command = [sys.executable, "-m", "pytest", "--collect-only", *options, str(TESTS)]
    answer = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-2000:]
    return frozenset(line.partition("[")[0] for line in answer.stdout.splitlines() if "::" in line)


def test_the_document_holds_every_part_of_the_description() -> None:
    headings = re.findall(r"^## (.+)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [
        "The loop",
        "Demand matching",
        "Pod provisioning",
        "syncWorkersState phases",
        "Health checks",
        "Lifecycle state machines",
        "Configuration",
        "HTTP endpoints",
        "Not claimed",
        "Sibling: a scheduler daemon for triggers",
        "Sibling: a scheduler of agents",
        "Sibling: a queue with a dashboard",
        "Sibling: durable schedules with catch-up",
    ]
    assert len(claims()) >= 90


def test_every_sentence_has_a_proof_or_says_not_yet() -> None:
    bare = [
        f"line {row.line}: {row.sentence}" for row in claims() if not row.test_ids and row.proof != NOT_YET
    ]
    assert not bare, "without a test:\n" + "\n".join(bare)


def test_nothing_but_test_ids_counts_as_a_proof() -> None:
    others = {row.line: TEST_ID.sub("", row.proof).replace(NOT_YET, "").strip(" ,;") for row in claims()}
    assert {line: text for line, text in others.items() if text} == {}


def test_every_test_that_is_named_runs() -> None:
    missing = [
        f"line {row.line}: {test}" for row in claims() for test in row.test_ids if test not in collected()
    ]
    assert not missing, "not collected, or marked to be skipped:\n" + "\n".join(missing)
