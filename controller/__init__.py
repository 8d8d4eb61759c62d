"""Switchboard connects GitHub Actions jobs to RISC-V boards.

The flow of one job, and where to read about each step:

    GitHub ──webhook──▶ web/webhook ──one transaction: row + event + pg_notify──▶ jobs
                                                                           │ {schema}_queue_event
    pod/node watch, next due time ──▶ wake ◀── 15 s timeout ◀───────────────┘
                        │                                   (reconcile/loop)
                        ▼  one iteration, only while this process leads
            sync_jobs ─▶ sync_workers (phases 1–5 and 2.5) ─▶ schedules ─▶ demand_match ─▶ provision ─▶ pod ─▶ board

Every step is observe → decide → act. Observing and acting is done by `gateways`, deciding by the pure
functions of `decide` over the values of `domain`; `reconcile` says when and in which order.
"""

__version__ = "0.1.0"
