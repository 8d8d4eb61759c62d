"""Resource quantities: `1`, `500m`, `40Gi`, `1e3`."""

import re
from decimal import Decimal

PATTERN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(m|u|n|[kMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
COMPLAINT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def parse_quantity(text: object) -> Decimal | None:
    """Read a quantity exactly; None if it is none."""
    match = PATTERN.fullmatch(str(text)) if isinstance(text, str | int | float) else None
    if match is None or isinstance(text, bool):
        return None
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * Decimal(1024 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:]))
