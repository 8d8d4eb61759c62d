"""The cache of conditional GETs: always revalidated, so it saves quota and never shows anything old.

Keyed by installation and full URL: GitHub's ETags depend on the token, and one installation's answer
must never be served to another.
"""

from collections import OrderedDict

from controller.gateways.github.answers import Answer

MAX_ENTRIES = 4096
MAX_BYTES = 32 * 1024 * 1024


class ETagCache:
    """The least recently used answers go first, by number and by size."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._answers: OrderedDict[tuple[int, str], Answer] = OrderedDict()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, installation_id: int, url: str) -> Answer | None:
        """The last answer of that URL, to be revalidated."""
        answer = self._answers.get((installation_id, url))
        if answer is not None:
            self._answers.move_to_end((installation_id, url))
        return answer

    def put(self, installation_id: int, url: str, answer: Answer) -> None:
        """Keep an answer, if it has an ETag."""
        self._drop((installation_id, url))
        if "etag" not in answer.headers or len(answer.body) > self._max_bytes:
            return
        self._answers[installation_id, url] = answer
        self._bytes += len(answer.body)
        while len(self._answers) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._answers)))

    def forget(self, installation_id: int) -> None:
        """Drop everything of one installation."""
        for key in [key for key in self._answers if key[0] == installation_id]:
            self._drop(key)

    def __len__(self) -> int:
        return len(self._answers)

    def _drop(self, key: tuple[int, str]) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._bytes -= len(answer.body)
