"""How GitHub is spoken to, by hand on httpx and pyjwt.

gateway ──▶ runners, groups, jobs, deliveries   what is asked, and what the answer means
                │  pages                        every page or an error
                ▼
            callers ──▶ app_auth, etags         as whom: token or JWT, cached answers
                │
                ▼
            client ──▶ budgets ──▶ limits       one request: deadline, redirects, rate limits
                ▼
            answers, refusals                   untrusted JSON in, values and errors out
"""

from controller.gateways.github.client import Deadlines, Observation
from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.github.groups import RunnerGroup

__all__ = ["Deadlines", "GitHubGateway", "Observation", "RunnerGroup"]
