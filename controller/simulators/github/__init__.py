"""A GitHub that speaks the real REST protocol and sends real webhooks, for the demo, tests and benchmarks.

    request ─▶ pipeline (fault, credential, limits) ─▶ routes/* ─▶ jobs, runners, accounts ─▶ state
                                                                      │ assignment, timers
    runner  ─▶ wire ──────────────────────────────────────────────────┤
    test    ─▶ scenario, control (/_sim/) ────────────────────────────┴─▶ deliveries ─▶ webhook URL

Payloads are built in `payloads/*`; what is true is read from `ledger`, what was asked from `request_log`.
"""

from controller.simulators.github.faults import Faults, Rule
from controller.simulators.github.simulator import GitHubSimulator
from controller.simulators.github.state import Account, Job, JobSpec, Repository, Run
from controller.simulators.github.webhook_faults import WebhookRule

__all__ = [
    "Account",
    "Faults",
    "GitHubSimulator",
    "Job",
    "JobSpec",
    "Repository",
    "Rule",
    "Run",
    "WebhookRule",
]
