"""What the doctor makes of what GitHub says of an App: its clock, permissions, installations and deliveries. Pure."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from controller.domain.checkup import AppFacts, Finding, InstallationFacts, fault, ok, warn
from controller.domain.durations import show_duration
from controller.domain.jobs import EntityType
from controller.domain.sightings import DeliverySighting
from controller.errors import GitHubError, GitHubForbidden, GitHubNotFound

RECENT = timedelta(hours=1)
REMEMBERED = timedelta(days=3)  # how long GitHub keeps deliveries
CLOCKS_APART = timedelta(seconds=60)  # further ahead, GitHub refuses what we sign; behind, it expires early
EVENT = "workflow_job"
NEEDED = {
    EntityType.ORGANIZATION: {"organization_self_hosted_runners": "write", "actions": "read"},
    EntityType.USER: {"administration": "write", "actions": "read"},
}
DISPATCHING = {"actions": "write"}  # needed besides by schedules that start workflows
RANKS = {"": 0, "read": 1, "write": 2, "admin": 3}


def judge_clock(theirs: datetime, ours: datetime) -> Finding:
    """Whether our clock goes with GitHub's."""
    apart = ours - theirs
    if abs(apart) <= CLOCKS_APART:
        return ok("clock", "it goes with GitHub's")
    ahead = apart > timedelta()
    way = "ahead of" if ahead else "behind"
    why = "GitHub refuses what is signed in its future" if ahead else "what we sign expires too early there"
    seen = f"it is {show_duration(abs(apart))} {way} GitHub's; {why}"
    return fault("clock", seen, "Set it on this node: `timedatectl set-ntp true`, or `chronyc makestep`.")


def judge_refusal(
    kind: EntityType,
    app_id: str,
    error: GitHubError,
    api_url: str,
    *,
    clock_wrong: bool,
    key_file: str,
    namespace: str,
) -> Finding:
    """What keeps us from asking as an App; `key_file` is the key's name in its Secret, in the release's namespace."""
    setting = f"github.apps.{kind.value}"
    page = f"{web_address(api_url)}/settings/apps"
    match error:
        case GitHubForbidden() if clock_wrong:
            todo = "Set the clock first; GitHub refuses what is signed with a wrong time."
        case GitHubForbidden():
            todo = (
                f"`{setting}.privateKeyFile` must hold a key of App {app_id}: generate one on its page under {page}, "
                f"then put it into the Secret that the chart's `appKeys` names: `kubectl -n {namespace} patch secret "
                f"""NAME --type merge -p '{{"data":{{"{key_file}":"'$(base64 -w0 app.pem)'"}}}}'`."""
            )
        case GitHubNotFound():
            todo = f"Correct `{setting}.appId`: {page} lists the Apps with their ids."
        case _:
            todo = f"Check that {api_url} is reached from here: `curl -I {api_url}`."
    return fault(f"App {app_id}", str(error), todo)


def web_address(api_url: str) -> str:
    """Where the pages are of the GitHub that has this API: github.com, ghe.com or a server of one's own."""
    parts = urlsplit(api_url)
    return f"{parts.scheme}://{parts.netloc.removeprefix('api.')}"


def judge_app(kind: EntityType, app: AppFacts) -> list[Finding]:
    """An App's permissions and events."""
    area, found = f"App {app.app_id}", []
    lacking = missing(NEEDED[kind], app.permissions)
    if lacking:
        todo = f"Grant {', '.join(lacking)} on {app.page}/permissions; owners must then accept it."
        found.append(fault(area, f"the permission {', '.join(lacking)} is missing", todo))
    if EVENT not in app.events:
        todo = f"Subscribe it to `Workflow job` on {app.page}/permissions."
        found.append(fault(area, f"it is not subscribed to {EVENT} events", todo))
    return found or [ok(area, f"{app.slug} has the permissions and events for {kind.value.lower()} accounts")]


def judge_installations(
    kind: EntityType,
    app: AppFacts,
    installations: Sequence[InstallationFacts],
    dispatching: Collection[str] = (),
) -> list[Finding]:
    """Where an App is installed, and what its owners have accepted; `dispatching` are owners of scheduled workflows."""
    area, found = f"App {app.app_id}", []
    if not installations:
        todo = f"Install it on {app.page}/installations; jobs come only from there."
        return [warn(area, "it is installed nowhere", todo)]
    for each in installations:
        lacking = missing(NEEDED[kind], each.permissions)
        starts = each.login.lower() in dispatching
        if each.kind != kind.value:
            todo = (
                f"Install there the App for {each.kind} accounts; jobs of this one are refused as wrong_app."
            )
            found.append(warn(area, f"it is installed for {each.login}, which is a {each.kind}", todo))
        elif each.suspended_at is not None:
            todo = f"An owner must unsuspend it on {each.page}."
            found.append(warn(area, f"its installation for {each.login} is suspended", todo))
        elif lacking:
            todo = f"An owner must accept the App's new permissions on {each.page}."
            found.append(fault(area, f"{each.login} has not granted {', '.join(lacking)}", todo))
        elif starts and missing(DISPATCHING, each.permissions):
            todo = f"Grant it on {app.page}/permissions; then an owner must accept it on {each.page}."
            seen = f"a schedule starts a workflow of {each.login}, which needs actions: write"
            found.append(fault(area, seen, todo))
    good = len(installations) - len(found)
    return [*found, ok(area, f"{good} of {len(installations)} installations can be used")]


def missing(needed: Mapping[str, str], granted: Mapping[str, str]) -> list[str]:
    """The permissions that are not there, or not high enough."""
    return [
        f"{name}: {level}"
        for name, level in needed.items()
        if RANKS.get(granted.get(name, ""), 0) < RANKS[level]
    ]


def judge_deliveries(
    app: AppFacts,
    deliveries: Sequence[DeliverySighting],
    last: datetime | None,
    now: datetime,
    *,
    push: bool,
) -> list[Finding]:
    """How GitHub's deliveries of the last hour fared; `last` is the newest that it remembers."""
    area, page, span = f"App {app.app_id}", f"{app.page}/advanced", show_duration(RECENT)
    recent = [each for each in deliveries if now - each.delivered_at <= RECENT]
    arrived = {each.guid for each in recent if each.ok}  # a redelivery has the GUID of the first
    failed = [each for each in recent if each.guid not in arrived]
    if recent and not push:
        return [ok(area, f"{len(recent)} deliveries in the last {span}; they are pulled")]
    if failed:
        # So has what GitHub sent before there was a receiver; the first that arrives makes it a warning.
        todo = (
            f"{page} shows why: is the address right, and the secret the same? Redeliver one there to try it."
        )
        what = f"{len(failed)} of {len(recent)} deliveries of the last {span} failed"
        if len(failed) == len(recent):
            return [fault(area, what, todo)]
        return [warn(area, f"{what}; they are pulled again", todo)]
    if recent:
        return [ok(area, f"all {len(recent)} deliveries of the last {span} arrived")]
    if last is not None and now - last <= REMEMBERED:
        todo = f"Nothing, if nobody queued a job; {page} lists what was sent."
        return [warn(area, f"GitHub sent nothing in the last {span}", todo)]
    # An installation alone causes a delivery, and so does every job: after three days of none the hook is suspect.
    address = "the address https://HOST/webhook" if push else "any https address that nobody serves"
    todo = f"Make the webhook active on {app.page}, with {address}; then queue a job."
    return [fault(area, f"no recent deliveries: GitHub remembers none of {show_duration(REMEMBERED)}", todo)]
