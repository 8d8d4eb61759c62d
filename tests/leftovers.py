"""What a test leaves behind, by everybody's own truth: GitHub's, the cluster's, the database's."""

from controller.gateways.postgres.database import Database
from controller.simulators.cluster import ClusterSimulator
from controller.simulators.cluster.objects import SECRETS
from tests.worlds import GitHubWorld

UNENDED = """
SELECT 'job ' || job_id AS what, status FROM jobs WHERE status IN ('pending', 'running')
UNION ALL SELECT 'worker ' || name, status FROM workers WHERE status IN ('pending', 'running')
"""


async def loose_ends(github: GitHubWorld, cluster: ClusterSimulator, database: Database) -> list[str]:
    """What is lost, or left over; empty when every job has finished and nothing of its worker remains."""
    async with database.transaction() as connection:
        rows = await (await connection.execute(UNENDED)).fetchall()
    ledger = github.sim.ledger
    return [
        *(f"{row['what']} is {row['status']}" for row in rows),
        *(
            f"job {job.job_id} is {job.status} at GitHub"
            for job in ledger.jobs()
            if job.status != "completed"
        ),
        *(f"runner {runner.name} is registered" for runner in ledger.runners() if runner.removed_at is None),
        *(f"pod {pod['metadata']['name']} is {pod['status']['phase']}" for pod in cluster.pods()),
        *(f"Secret {secret['metadata']['name']} exists" for secret in cluster.store.all(SECRETS)),
    ]
