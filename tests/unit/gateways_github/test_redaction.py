"""No secret survives `redact`, and what is no secret does."""

import base64

import pytest

from controller.telemetry.redaction import REDACTED, redact
from tests.unit.gateways_github.scripted import private_key

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMTEifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
JIT = base64.b64encode(b'{".runner": "secret"}' * 20).decode()


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param("ghs_" + "a" * 36, id="the old installation token"),
        pytest.param("ghs_111_" + JWT + "_-." + "b" * 400, id="the new installation token"),
        pytest.param("ghp_" + "a" * 36, id="a personal token"),
        pytest.param("gho_" + "a" * 36, id="an OAuth token"),
        pytest.param("github_pat_" + "a" * 22 + "_" + "b" * 59, id="a fine-grained token"),
        pytest.param(JWT, id="a JWT"),
        pytest.param(JIT, id="a JIT config"),
        pytest.param(private_key().decode(), id="a private key"),
        pytest.param(private_key().decode()[:400], id="a private key that was cut off"),
    ],
)
def test_a_secret_is_taken_out_wherever_it_stands(secret: str) -> None:
    text = redact(f"before {secret} after")
    assert secret not in text
    assert not any(line in text for line in secret.splitlines() if len(line) > 40)
    assert text.startswith(f"before {REDACTED}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RUNNER_JITCONFIG=abc123 next", f"RUNNER_JITCONFIG={REDACTED} next"),
        ('{"RUNNER_JITCONFIG": "abc123"}', f'{{"RUNNER_JITCONFIG": "{REDACTED}"}}'),
        ('{"encoded_jit_config": "abc"}', f'{{"encoded_jit_config": "{REDACTED}"}}'),
        ("./run.sh --jitconfig abc123 --once", f"./run.sh --jitconfig {REDACTED} --once"),
        ("Authorization: Basic dXNlcjpwdw==\nHost: x", f"Authorization: {REDACTED}\nHost: x"),
        ("{'authorization': 'token abc'}", f"{{'authorization': '{REDACTED}'}}"),
        ("curl -H 'x: bearer 0123456789abcdef'", f"curl -H 'x: bearer {REDACTED}'"),
        ("postgresql://joe:s3cret@db:5432/x", f"postgresql://joe:{REDACTED}@db:5432/x"),
        ("postgres://joe:s3/cr@t@db/x?a=b", f"postgres://joe:{REDACTED}@db/x?a=b"),
        ("postgresql+psycopg://:pw@db", f"postgresql+psycopg://:{REDACTED}@db"),
        ("postgresql://db/x?user=joe&password=pw&a=b", f"postgresql://db/x?user=joe&password={REDACTED}&a=b"),
    ],
)
def test_only_the_secret_part_goes(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://db:5432/switchboard",
        "postgresql://joe@db/switchboard",
        "the runner rise-riscv-runner-abc123def said ghs_short",
        "sha256:757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        "https://github.com/example-org/llvm/actions/runs/123/job/456",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_what_follows_a_private_key_stays() -> None:
    assert redact(f"{private_key().decode()}and then it failed").endswith("and then it failed")


def test_redacting_twice_changes_nothing() -> None:
    once = redact(f"RUNNER_JITCONFIG={JIT} Authorization: Bearer {JWT}")
    assert redact(once) == once


@pytest.mark.parametrize(
    "piece", ["eyJ-", "postgres://x:", "-----BEGIN PRIVATE KEY-----", "ghs_-", "authorization:"]
)
def test_a_hostile_log_does_not_stop_the_loop(piece: str) -> None:
    # Quadratic work on a megabyte would run into the test's own deadline.
    assert len(redact(piece * (1_000_000 // len(piece)))) <= 1_500_000
