"""sync_workers: rows, pods, nodes and runners are brought into agreement, in phases 1 to 5 and 2.5 under one lock.

    observe (no lock) ─▶ lock: OrphanSweep, PodPhaseSync, UnreachableNodeCheck, HealthChecks,
                               GitHubCleanup, DeleteTerminalPods ─▶ commit ─▶ effects

The lock never spans a network call. Under it rows are changed and kills become intents; after the commit the
effects are carried out, each with a deadline, and whatever did not happen is decided again next time.
"""

from controller.reconcile.sync_workers.step import SyncWorkers

__all__ = ["SyncWorkers"]
