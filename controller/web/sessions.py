"""Sessions: a cookie that proves its bearer once knew the admin token, without holding it. Pure but for HMAC.

    value = name . end . HMAC(key, name . end)        key = HMAC(token, "session")

Nothing is stored: another token ends every session, signing out drops the cookie, and the end is part of the proof.
"""

import base64
import binascii
import hmac
from datetime import UTC, datetime, timedelta

from controller.ports import Secret

SESSION_LENGTH = timedelta(hours=12)
NAME_LIMIT = 60
NOBODY_SAID = "admin"  # who acts when nobody gave a name


class Sessions:
    """Opens and checks sessions of one admin token."""

    def __init__(self, token: Secret) -> None:
        self._key = _digest(token.reveal().encode(), "session")

    def open(self, name: str, now: datetime) -> str:
        """A new session's value."""
        said = base64.urlsafe_b64encode(clean_name(name).encode()).decode().rstrip("=")
        claim = f"{said}.{int((now + SESSION_LENGTH).timestamp())}"
        return f"{claim}.{self._proof(claim)}"

    def name_of(self, value: str, now: datetime) -> str | None:
        """Whose session this is; None if it is forged or over."""
        claim, _, proof = value.rpartition(".")
        said, _, end = claim.partition(".")
        if not hmac.compare_digest(proof.encode(errors="replace"), self._proof(claim).encode()):
            return None
        if datetime.fromtimestamp(int(end), UTC) <= now:
            return None
        try:
            return base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None

    def csrf(self, value: str) -> str:
        """What a form of this session must carry: another site can send the cookie along, but cannot read this."""
        return _digest(self._key, f"csrf {value}").hex()

    def _proof(self, claim: str) -> str:
        return _digest(self._key, f"session {claim}").hex()


def clean_name(text: str) -> str:
    """A name as it may stand in events: printable, not too long, never empty."""
    printable = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return printable[:NAME_LIMIT].strip() or NOBODY_SAID


def _digest(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(errors="replace"), "sha256").digest()
