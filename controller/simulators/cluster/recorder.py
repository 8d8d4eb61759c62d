"""Events, as scheduler and kubelets record them: repeats are counted, old ones expire after an hour."""

import itertools
from collections import deque
from datetime import datetime, timedelta

from controller.ports import Clock
from controller.simulators.cluster.objects import EVENTS, Json, key_of, moment_of, timestamp, uid_of
from controller.simulators.cluster.store import Key, Store

LIFETIME = timedelta(hours=1)


class Recorder:
    """Writes events about pods."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._numbers = itertools.count(1)
        self._known: dict[tuple[str, str, str], Key] = {}
        self._expiry: deque[tuple[datetime, Key, tuple[str, str, str]]] = deque()

    def normal(self, pod: Json, reason: str, message: str, component: str, host: str = "") -> None:
        """Something that is as it should be."""
        self._record("Normal", pod, reason, message, component, host)

    def warning(self, pod: Json, reason: str, message: str, component: str, host: str = "") -> None:
        """Something that is not."""
        self._record("Warning", pod, reason, message, component, host)

    def _record(self, kind: str, pod: Json, reason: str, message: str, component: str, host: str) -> None:
        now = self._clock.now()
        self._expire(now)
        about = (uid_of(pod), reason, message)
        known = self._known.get(about)
        if known is not None and self._store.change(EVENTS, known, lambda event: _again(event, now)):
            return
        namespace, name = key_of(pod)
        key = (namespace, f"{name}.{next(self._numbers):016x}")
        source = {"component": component, **({"host": host} if host else {})}
        stamp = timestamp(now)
        event: Json = {
            "metadata": {
                "name": key[1],
                "namespace": namespace,
                "uid": f"00000000-0000-4000-8000-{next(self._numbers):012x}",
                "creationTimestamp": stamp,
            },
            "involvedObject": {
                "kind": "Pod",
                "namespace": namespace,
                "name": name,
                "uid": uid_of(pod),
                "apiVersion": "v1",
                "resourceVersion": pod["metadata"]["resourceVersion"],
            },
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": host,
        }
        self._store.create(EVENTS, event)
        self._known[about] = key
        self._expiry.append((now + LIFETIME, key, about))

    def _expire(self, now: datetime) -> None:
        while self._expiry and self._expiry[0][0] <= now:
            _, key, about = self._expiry.popleft()
            event = self._store.find(EVENTS, *key)
            if event is None:
                self._known.pop(about, None)
                continue
            due = moment_of(event["lastTimestamp"]) + LIFETIME
            if due > now:
                self._expiry.append((due, key, about))
                continue
            self._store.remove(EVENTS, key)
            self._known.pop(about, None)


def _again(event: Json, now: datetime) -> None:
    event["count"] += 1
    event["lastTimestamp"] = timestamp(now)
