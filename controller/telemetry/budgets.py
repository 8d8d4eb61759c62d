"""What is left of each installation's requests, as a gauge that forgets installations nobody uses."""

from datetime import datetime, timedelta

from prometheus_client import Gauge

SHOWN_FOR = timedelta(hours=1)


class BudgetGauge:
    """The gauge of the installations used in the last hour, so that its labels stay few."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._used_at: dict[str, datetime] = {}

    def see(self, installation_id: int, remaining: int, now: datetime) -> None:
        """An answer told what is left."""
        name = str(installation_id)
        self._used_at[name] = now
        self._gauge.labels(name).set(remaining)

    def forget_unused(self, now: datetime) -> None:
        """Drop those that have not been used for an hour."""
        for name in [name for name, at in self._used_at.items() if now - at > SHOWN_FOR]:
            del self._used_at[name]
            self._gauge.remove(name)

    def clear(self) -> None:
        """Drop all."""
        self._used_at.clear()
        self._gauge.clear()
