"""`switchboard demo`: the real controller and receiver, on embedded PostgreSQL, against a simulated GitHub and a
simulated cluster, all over HTTP. Stands above `app`: it only hands in another world and other settings.

    traffic ─▶ simulated GitHub ─webhooks─▶ app ─▶ simulated cluster ─runners─▶ simulated GitHub
                        └──────────── ledger ─▶ watchman ─▶ summary ◀── rows
"""

from controller.demo.run import run_demo

__all__ = ["run_demo"]
