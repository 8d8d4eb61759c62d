"""The bodies of writes, as the API takes them and as `/api/openapi.json` describes them."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from controller.domain.controls import JobAction
from controller.domain.durations import parse_duration

NOTE_LIMIT = 500


def _blank(value: Any) -> Any:
    """A field that a form left empty was not given."""
    return None if isinstance(value, str) and not value.strip() else value


def _duration(value: str | None) -> str | None:
    """A duration as it was written: it counts from when the hold begins."""
    if value is not None:
        parse_duration(value)
    return value


def _storable(value: Any) -> Any:
    if isinstance(value, str) and ("\x00" in value or (not value.isascii() and _broken(value))):
        raise ValueError("expected plain text")
    return value


def _broken(value: str) -> bool:
    """Half of a surrogate pair has no form that the database takes."""
    return any(0xD800 <= ord(letter) <= 0xDFFF for letter in value)


Note = Annotated[
    str,
    BeforeValidator(_storable),
    Field(
        max_length=NOTE_LIMIT,
        description="Why, for the event and for whoever asks.",
        examples=["new SD card"],
    ),
]


class Body(BaseModel):
    """Unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class NoteBody(Body):
    """A write that needs nothing but may say why."""

    note: Note = ""


class ActionBody(NoteBody):
    """What to do with a pending job."""

    action: JobAction


class HoldBody(NoteBody):
    """How long to hold; neither field: until somebody resumes it."""

    until: Annotated[AwareDatetime | None, BeforeValidator(_blank)] = Field(
        None, description="A time with its zone, in the future.", examples=["2030-01-01T08:00:00Z"]
    )
    for_: Annotated[str | None, BeforeValidator(_blank), AfterValidator(_duration)] = Field(
        None,
        alias="for",
        description="A duration instead.",
        examples=["30m", "2h"],
        json_schema_extra={
            "anyOf": [{"type": "string", "pattern": "^[1-9][0-9]{0,5}[smhd]$"}, {"type": "null"}]
        },
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> "HoldBody":
        if self.until is not None and self.for_ is not None:
            raise ValueError("give `until` or `for`, not both")
        return self

    def end(self, now: datetime) -> datetime | None:
        """When the hold ends by itself; ValueError if that is not a moment to come."""
        try:
            end = now + parse_duration(self.for_) if self.for_ is not None else self.until
        except OverflowError:
            raise ValueError("for: that is longer than time lasts") from None
        if end is not None and end <= now:
            raise ValueError("until: that moment has passed")
        return end
