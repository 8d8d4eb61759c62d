"""Takes secrets out of text from outside before it is logged, stored or shown: the last line of defence."""

import re
from typing import Any

REDACTED = "[redacted]"

# Order matters: whole blocks and named fields first, so that no half of a secret is left behind.
# Repetitions are bounded or start only once per run of characters: the text may come from a hostile job.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # The end marker may be cut off in a clipped text: then everything that looks like the key goes.
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?:(?!-----BEGIN).)*?"
            r"(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|(?=-----BEGIN)|\Z)",
            re.S,
        ),
        REDACTED,
    ),
    (re.compile(r"(RUNNER_JITCONFIG[\"']?\s*[=:]\s*[\"']?)[^\s\"']+"), rf"\1{REDACTED}"),
    (re.compile(r"(--jitconfig[=\s]+[\"']?)[^\s\"']+"), rf"\1{REDACTED}"),
    (re.compile(r"(encoded_jit_config[\"']?\s*[=:]\s*[\"']?)[^\s\"']+"), rf"\1{REDACTED}"),
    (re.compile(r"(authorization[\"']?\s*[:=]\s*[\"']?)[^\r\n\"']+", re.I), rf"\1{REDACTED}"),
    (re.compile(r"\b(bearer\s+)[A-Za-z0-9._~+/=-]{16,}", re.I), rf"\1{REDACTED}"),
    # user:password@ up to the last @ of the authority: passwords may hold an unescaped @ themselves.
    (re.compile(r"\b(postgres(?:ql)?(?:\+\w+)?://[^\s:/@\"']{0,200}):[^\s\"']{0,500}@"), rf"\1:{REDACTED}@"),
    (re.compile(r"\b(postgres(?:ql)?(?:\+\w+)?://[^\s\"']{0,500}[?&]password=)[^\s&\"']+"), rf"\1{REDACTED}"),
    (re.compile(r"\bgithub_pat_[A-Za-z0-9_]{22,}"), REDACTED),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9._-]{36,}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), REDACTED),
    (re.compile(r"[A-Za-z0-9+/_-]{201,}={0,2}"), REDACTED),
)


def redact(text: str) -> str:
    """Replace tokens, JWTs, JIT configs, authorization headers, database passwords and private keys."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def cleaned(value: Any) -> Any:
    """The same without secrets and without what no database takes, however deeply it is nested."""
    if isinstance(value, str):
        return redact(value).replace("\x00", "")
    if isinstance(value, dict):
        return {key: cleaned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(each) for each in value]
    return value
