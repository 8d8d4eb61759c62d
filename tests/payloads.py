"""Builders of deliveries: valid as GitHub sends them, only the interesting field is given."""

from copy import deepcopy
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from controller.decide.deliveries import read_delivery
from controller.domain.deliveries import Delivery
from controller.domain.pools import Catalogue, Pool
from tests.clocks import EPOCH

JOB_ID = 4_200
RUNNER = "rise-riscv-runner-a1b2c3d4e"
LABELS = ("ubuntu-24.04-riscv",)
CATALOGUE = Catalogue((Pool("scw-em-rv1", "scw-em-rv1", (LABELS,), "image", {}),))
_guids = count(1)

CREATED = EPOCH - timedelta(minutes=3)
STARTED = EPOCH - timedelta(minutes=2)
COMPLETED = EPOCH - timedelta(minutes=1)


def stamp(at: datetime) -> str:
    """A time as GitHub writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def job_payload(action: str = "queued", *, job: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    """A `workflow_job` payload of an organization; `job` and keyword arguments replace fields."""
    begun = action in ("in_progress", "completed")
    ended = action == "completed"
    payload: dict[str, Any] = {
        "action": action,
        "workflow_job": {
            "id": JOB_ID,
            "run_id": 77,
            "run_attempt": 1,
            "name": "build",
            "html_url": "https://github.com/example-org/llvm/actions/runs/77/job/4200",
            "status": action,
            "conclusion": "success" if ended else None,
            "labels": list(LABELS),
            "runner_name": RUNNER if begun else None,
            "created_at": stamp(CREATED),
            "started_at": stamp(STARTED if begun else CREATED),
            "completed_at": stamp(COMPLETED) if ended else None,
        },
        "repository": {
            "id": 9,
            "full_name": "example-org/llvm",
            "private": False,
            "owner": {"id": 5, "login": "example-org", "type": "Organization"},
        },
        "organization": {"id": 5, "login": "example-org"},
        "installation": {"id": 31, "node_id": "x"},
        "sender": {"id": 6, "login": "ada"},
    }
    payload["workflow_job"] |= job or {}
    return payload | top


def personal(payload: dict[str, Any]) -> dict[str, Any]:
    """The same delivery for a personal account's repository."""
    changed = deepcopy(payload)
    changed.pop("organization", None)
    changed["repository"] |= {
        "full_name": "ada/llvm",
        "owner": {"id": 6, "login": "ada", "type": "User"},
    }
    return changed


def a_guid() -> str:
    """A GUID that no other delivery has."""
    return f"72d3162e-cc78-11e3-81ab-{next(_guids):012x}"


def a_delivery(
    payload: dict[str, Any] | None = None, *, event: str = "workflow_job", guid: str | None = None
) -> Delivery:
    """A delivery as the intake gets it."""
    notice = read_delivery(event, payload if payload is not None else job_payload())
    return Delivery(guid or a_guid(), "111", event, "webhook", notice)
