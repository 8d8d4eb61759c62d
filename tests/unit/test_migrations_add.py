"""A migration only adds; one that takes something away says that programs from before no longer work."""

import re

import pytest

from controller.gateways.postgres.migrate import Migration, as_numbers, migrations

TAKES_AWAY = (
    r"\bDROP\s+(TABLE|COLUMN|VIEW|FUNCTION|TYPE|SCHEMA)\b",
    r"\bRENAME\b",
    r"\bALTER\s+COLUMN\s+\w+\s+(SET\s+DATA\s+)?TYPE\b",
    r"\bSET\s+NOT\s+NULL\b",
    r"\bADD\s+COLUMN\s+(?![^,;]*\bDEFAULT\b)[^,;]*\bNOT\s+NULL\b",
)


def takes_away(step: Migration) -> bool:
    """Whether a program from before the migration may fail after it."""
    text = re.sub(r"--.*", "", step.text)
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in TAKES_AWAY)


@pytest.mark.parametrize("step", migrations(), ids=lambda step: step.name)
def test_an_older_program_works_after_it_or_is_refused(step: Migration) -> None:
    before = max(
        (as_numbers(each.serves) for each in migrations() if each.version < step.version), default=()
    )
    assert not takes_away(step) or as_numbers(step.serves) > before


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("CREATE TABLE a (b text NOT NULL);", False),
        ("ALTER TABLE a ADD COLUMN c text;", False),
        ("ALTER TABLE a ADD COLUMN c integer NOT NULL DEFAULT 0, ADD COLUMN d text;", False),
        ("ALTER TABLE a ADD COLUMN c integer NOT NULL;", True),
        ("ALTER TABLE a ADD COLUMN c integer DEFAULT 0, ADD COLUMN d text NOT NULL;", True),
        ("ALTER TABLE a RENAME COLUMN b TO c;", True),
        ("ALTER TABLE a ALTER COLUMN b TYPE bigint;", True),
        ("alter table a alter column b set not null;", True),
        ("ALTER TABLE a\n  DROP COLUMN b;", True),
        ("-- DROP TABLE a\nDROP INDEX a_b;", False),
    ],
)
def test_what_takes_something_away_is_recognised(text: str, taken: bool) -> None:
    assert takes_away(Migration(1, "x", "0.1.0", text)) is taken
