"""What every part of the settings file has in common."""

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from controller.domain.durations import parse_duration

Duration = Annotated[timedelta, BeforeValidator(parse_duration)]

# Frozen, camelCase in the file, unknown keys refused.
STRICT = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)
