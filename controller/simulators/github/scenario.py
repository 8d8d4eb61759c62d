"""What people do on GitHub: create accounts, push, cancel, approve, suspend; by Python or by `control`."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from controller.simulators.github import accounts
from controller.simulators.github.platform import Platform
from controller.simulators.github.routes.workflows import RERUN
from controller.simulators.github.state import Account, App, Installation, Job, JobSpec, Repository, Run


class Scenario(Platform):
    """The platform with its people."""

    @property
    def webhook_url(self) -> str | None:
        """Where webhooks go; None: they are recorded as failed, not sent."""
        return self.webhooks.url

    @webhook_url.setter
    def webhook_url(self, url: str | None) -> None:
        self.webhooks.url = url

    def add_app(
        self, app_id: str, public_key_pem: bytes, permissions: Mapping[str, str] | None = None
    ) -> App:
        """Register an App; without permissions it has all that Switchboard asks for."""
        return accounts.add_app(self, int(app_id), public_key_pem, permissions)

    def add_organization(self, login: str, app_id: str) -> Account:
        """An organization with the App installed and the Default runner group."""
        return accounts.add_account(self, login, int(app_id), "Organization")

    def add_user(self, login: str, app_id: str) -> Account:
        """A personal account with the App installed."""
        return accounts.add_account(self, login, int(app_id), "User")

    def add_repository(self, full_name: str, private: bool = False) -> Repository:
        """A repository of an existing account."""
        return accounts.add_repository(self, full_name, private)

    def add_workflow(self, full_name: str, file: str, jobs: Sequence[JobSpec]) -> None:
        """A workflow file that can be dispatched."""
        accounts.add_workflow(self, self.world.repository(full_name), file, jobs)

    def queue_run(
        self, full_name: str, jobs: Sequence[JobSpec], *, event: str = "push", branch: str = "main"
    ) -> Run:
        """Start a run with these jobs; `queued` webhooks are sent."""
        return self.jobs.queue_run(self.world.repository(full_name), jobs, event=event, branch=branch)

    def dispatch_by_hand(self, full_name: str, file: str) -> Run:
        """Somebody starts a workflow on GitHub's pages."""
        repository = self.world.repository(full_name)
        jobs = repository.workflows[file].jobs
        return self.jobs.queue_run(repository, jobs, event="workflow_dispatch", workflow=file)

    def queue_fork_run(self, full_name: str, jobs: Sequence[JobSpec]) -> Run:
        """The same for a pull request that comes from a fork."""
        repository = self.world.repository(full_name)
        return self.jobs.queue_run(repository, jobs, event="pull_request", branch="patch", fork=True)

    def rerun_failed(self, run_id: int) -> list[Job]:
        """Run the failed and cancelled jobs of a run again, under new ids."""
        run = self.world.runs[run_id]
        return self.jobs.rerun(run, [job for job in run.latest_jobs() if job.conclusion in RERUN])

    def cancel_job(self, job_id: int) -> None:
        """Cancel a job: at once in the queue, by way of its runner while it runs."""
        self.jobs.cancel(self.world.jobs[job_id])

    def cancel_run(self, run_id: int) -> None:
        """Cancel all jobs of a run that have not ended."""
        for job in self.world.runs[run_id].latest_jobs():
            self.jobs.cancel(job)

    def approve(self, job_id: int) -> None:
        """Approve the deployment that a waiting job is held by."""
        self.jobs.approve(self.world.jobs[job_id])

    def end_run(self, run_id: int, conclusion: str = "startup_failure") -> None:
        """End a run but leave its queued jobs queued for ever, without a webhook."""
        self.jobs.end_run(self.world.runs[run_id], conclusion)

    def hide_job(self, job_id: int, duration: timedelta, *, in_list: bool = False) -> None:
        """Answer 404 for a job for a while."""
        self.jobs.hide(self.world.jobs[job_id], duration, in_list)

    def remove_runner(self, name: str, why: str = "server_side") -> None:
        """Forget a registration without anybody asking."""
        runner = self.world.runner_named(name)
        if runner is None:
            raise KeyError(name)
        self.runners.remove(runner, why)

    def refuse_runner_versions(self, login: str, below: str | None) -> None:
        """Answer 426 to runners of an account below this version, or that name none; None: to nobody."""
        self.world.accounts[login.lower()].min_runner_version = below

    def rename_repository(self, full_name: str, name: str) -> None:
        """Rename: the old address redirects."""
        accounts.rename_repository(self, self.world.repository(full_name), name)

    def rename_account(self, login: str, new: str) -> None:
        """Rename an organization or a person: only addresses of repositories redirect."""
        accounts.rename_account(self, self.world.accounts[login.lower()], new)

    def suspend(self, login: str) -> None:
        """Suspend the App at an account."""
        accounts.suspend(self, self._installation(login))

    def unsuspend(self, login: str) -> None:
        """Let the App back in."""
        accounts.unsuspend(self, self._installation(login))

    def uninstall(self, login: str) -> None:
        """Remove the App from an account."""
        accounts.uninstall(self, self._installation(login))

    def reinstall(self, login: str) -> Installation:
        """Install the same App again: a new installation id."""
        old = self._installation(login)
        return accounts.install(self, old.account, old.app.id)

    def revoke_tokens(self, login: str) -> None:
        """Make every token of the account's installation invalid before its time."""
        self.auth.revoke(self._installation(login))

    def _installation(self, login: str) -> Installation:
        return self.world.accounts[login.lower()].installation
