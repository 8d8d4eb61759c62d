"""Which class of requests an installation's budget still allows: provision > cleanup > repair. Pure."""

from datetime import datetime

from controller.domain.budgets import Budget
from controller.domain.constants import CLEANUP_ONLY_SHARE, PROVISION_ONLY_SHARE


def repair_allowed(budget: Budget, now: datetime) -> bool:
    """Repair is the first class to stop when an installation's requests run low."""
    return _left(budget, CLEANUP_ONLY_SHARE, now)


def cleanup_allowed(budget: Budget, now: datetime) -> bool:
    """Cleanup goes on longer than repair, but not to the last request."""
    return _left(budget, PROVISION_ONLY_SHARE, now)


def back_at(budget: Budget, now: datetime) -> datetime | None:
    """When a class that has stopped may go on; None if nobody has said."""
    said = [at for at in (budget.blocked_until, budget.resets_at) if at is not None and at > now]
    return min(said, default=None)


def _left(budget: Budget, share: float, now: datetime) -> bool:
    if budget.blocked_until is not None and budget.blocked_until > now:
        return False
    return not budget.limit or budget.remaining >= budget.limit * share
