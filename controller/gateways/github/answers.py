"""What GitHub answered, read with suspicion: a missing or misshapen field is an outage, never a KeyError."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from controller.errors import GitHubUnavailable


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, kept as bytes until somebody needs a field of it."""

    operation: str
    status: int
    headers: Mapping[str, str] = field(repr=False)  # lower-case names
    body: bytes = field(repr=False)  # may hold a token or a JIT config
    next_url: str | None = None

    @property
    def request_id(self) -> str | None:
        """GitHub's name for this exchange; support asks for it."""
        return self.headers.get("x-github-request-id")

    @property
    def message(self) -> str:
        """The error message of the body, or an empty text."""
        try:
            body = json.loads(self.body)
        except (ValueError, RecursionError):
            return ""
        message = body.get("message") if isinstance(body, dict) else None
        return message if isinstance(message, str) else ""

    def item(self) -> "Item":
        """The body as an object."""
        return Item(self._json(), self)

    def items(self) -> list["Item"]:
        """The body as an array of objects."""
        return _items(self._json(), self, "the body")

    def broken(self, why: str) -> GitHubUnavailable:
        """The error for an answer that cannot be understood."""
        return GitHubUnavailable(
            f"{self.operation}: {why} in GitHub's answer", status=self.status, request_id=self.request_id
        )

    def _json(self) -> object:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            # Not chained: the error of the parser carries the whole body, which may be a credential.
            raise self.broken("no JSON") from None


class Item:
    """One JSON object of an answer; every reader says what it expects."""

    __slots__ = ("_answer", "_values")

    def __init__(self, values: object, answer: Answer) -> None:
        if not isinstance(values, dict):
            raise answer.broken("no object")
        self._values: dict[str, Any] = values
        self._answer = answer

    def integer(self, key: str) -> int:
        """A number that must be there."""
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._answer.broken(f"no number {key!r}")
        return value

    def optional_integer(self, key: str) -> int | None:
        """A number, or None if it is missing or null."""
        return None if self._values.get(key) is None else self.integer(key)

    def text(self, key: str) -> str:
        """A text that must be there."""
        value = self._values.get(key)
        if not isinstance(value, str):
            raise self._answer.broken(f"no text {key!r}")
        return value

    def optional_text(self, key: str) -> str | None:
        """A text, or None if it is missing or null."""
        return None if self._values.get(key) is None else self.text(key)

    def flag(self, key: str) -> bool:
        """A boolean that must be there."""
        value = self._values.get(key)
        if not isinstance(value, bool):
            raise self._answer.broken(f"no boolean {key!r}")
        return value

    def optional_flag(self, key: str) -> bool:
        """A boolean; missing or null is False."""
        return False if self._values.get(key) is None else self.flag(key)

    def time(self, key: str) -> datetime:
        """A moment that must be there, in UTC."""
        try:
            moment = datetime.fromisoformat(self.text(key))
            if moment.tzinfo is None:
                raise self._answer.broken(f"no time zone in {key!r}")
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise self._answer.broken(f"no time {key!r}") from None

    def optional_time(self, key: str) -> datetime | None:
        """A moment, or None if it is missing, null or empty."""
        return self.time(key) if self._values.get(key) else None

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of an array; a missing or null one is empty."""
        values = self._values.get(key) or []
        if not isinstance(values, list):
            raise self._answer.broken(f"no array {key!r}")
        return tuple(value for value in values if isinstance(value, str))

    def text_map(self, key: str) -> dict[str, str]:
        """The entries of an object whose values are texts; a missing one is empty."""
        values = self._values.get(key) or {}
        if not isinstance(values, dict):
            raise self._answer.broken(f"no object {key!r}")
        return {name: value for name, value in values.items() if isinstance(value, str)}

    def item(self, key: str) -> "Item":
        """An object that must be there."""
        return Item(self._values.get(key), self._answer)

    def optional_item(self, key: str) -> "Item | None":
        """An object, or None if it is missing or null."""
        return None if self._values.get(key) is None else self.item(key)

    def items(self, key: str) -> list["Item"]:
        """An array of objects that must be there."""
        return _items(self._values.get(key), self._answer, repr(key))

    def embedded_object(self, key: str) -> dict[str, Any] | None:
        """An object, also one given as JSON text; None if it is missing or null."""
        value = self._values.get(key)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise self._answer.broken(f"no JSON in {key!r}") from None
        if value is None or isinstance(value, dict):
            return value
        raise self._answer.broken(f"no object {key!r}")


def _items(values: object, answer: Answer, what: str) -> list[Item]:
    if not isinstance(values, list):
        raise answer.broken(f"no array in {what}")
    return [Item(value, answer) for value in values]
