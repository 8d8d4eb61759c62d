"""The explanation of a job for a terminal: the same values that the page and the API show."""

import re
from datetime import datetime

from controller.web.rendering import stamp
from controller.web.shown import Shown
from controller.web.wording import tally

# What came from outside must not move the cursor, colour or turn around what is read, or look like lines of ours.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def describe_explanation(shown: Shown) -> str:
    """The state and its reason, the sentence, what was counted, and what to do."""
    reason = f" ({shown['reason']})" if shown["reason"] else ""
    lines = [f"Job {shown['job_id']} is {shown['state']}{reason}.", shown["sentence"]]
    lines += [shown[name] for name in ("figures", "message") if shown[name]]
    for name, value in shown["detail"].items():
        if value not in (None, "", [], {}):
            lines.append(f"  {name.replace('_', ' ')}: {_value(value)}")
    if isinstance(shown["since"], datetime):
        lines.append(f"  since: {stamp(shown['since'])}")
    if shown["next_step"]:
        lines.append(f"→ {shown['next_step']}")
    return "\n".join(UNPRINTABLE.sub(" ", line) for line in lines)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return tally(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
