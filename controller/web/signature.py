"""Whether a body was signed with one of our webhook secrets; asked before anything in it is looked at."""

import hmac
import re
from collections.abc import Sequence

from controller.ports import Secret

FORM = re.compile(r"sha256=([0-9a-f]{64})")


class Signature:
    """Takes the body piece by piece as it arrives, once for every secret."""

    def __init__(self, secrets: Sequence[Secret], header: str | None) -> None:
        found = FORM.fullmatch(header or "")
        self._claimed = found[1] if found else None
        self._digests = [hmac.new(secret.reveal().encode(), digestmod="sha256") for secret in secrets]

    @property
    def claimed(self) -> bool:
        """Whether there is a signature at all; without one the body need not be read."""
        return self._claimed is not None

    def update(self, piece: bytes) -> None:
        """Take in the next piece of the body."""
        for digest in self._digests:
            digest.update(piece)

    def holds(self) -> bool:
        """Whether one of the secrets made it; takes the same time whichever did, or none."""
        verdicts = [hmac.compare_digest(digest.hexdigest(), self._claimed or "") for digest in self._digests]
        return any(verdicts)
