"""`schedules:` of the file, and the body with which the API makes one: the same checks, all mistakes at once."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import time, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from controller.decide.slots import check_spec, check_timezone
from controller.domain.durations import show_duration
from controller.domain.jobs import LabelSet, normalise_labels
from controller.domain.schedules import Action, CatchUp, Definition, QuietHours, ScheduleType
from controller.settings.model import STRICT, Duration

MOST_INPUTS = 25
LONGEST_WINDOW = timedelta(days=7)
LONGEST_HOLD = timedelta(days=366)


def _clock_time(value: object) -> time:
    """Read `22:00`; YAML reads it unquoted as a number of minutes."""
    if isinstance(value, time):
        return value
    if isinstance(value, str) and len(value) == len("22:00"):
        try:
            return time.fromisoformat(value)
        except ValueError:
            pass
    raise ValueError('expected a time of day in quotes, such as "22:00"')


def _zone(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected the name of a time zone such as Europe/Berlin")
    check_timezone(value)
    return value


def _written(pattern: str, expected: str) -> AfterValidator:
    """Holds a text to a pattern, and says in words what it should be."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(f"expected {expected}")
        return value

    return AfterValidator(check)


NAME = "[a-z0-9]([-a-z0-9_.]{0,61}[a-z0-9])?"
LOGIN = "[A-Za-z0-9][A-Za-z0-9-]{0,38}"
REPO = f"{LOGIN}/[A-Za-z0-9._-]{{1,100}}"
Name = Annotated[
    str,
    _written(NAME, "small letters, digits and -_. between them, such as weekday-mornings"),
    Field(json_schema_extra={"pattern": f"^{NAME}$"}),
]
Login = Annotated[str, _written(LOGIN, "the login of an organization or person, such as example-org")]
Repo = Annotated[str, _written(REPO, "OWNER/REPOSITORY, such as example-org/llvm")]
Workflow = Annotated[
    str, _written("[A-Za-z0-9._-]{1,200}", "the name of the workflow's file, such as nightly.yml, or its id")
]
ClockTime = Annotated[time, BeforeValidator(_clock_time)]
Zone = Annotated[str, BeforeValidator(_zone)]


class Model(BaseModel):
    """A part of a schedule."""

    model_config = STRICT


class Hours(Model):
    """Quiet hours: from one time of day to another, wrapping midnight if need be."""

    from_: ClockTime = Field(alias="from")
    to: ClockTime
    timezone: Zone | None = None

    def as_domain(self, timezone: str = "UTC") -> QuietHours:
        """In their own zone, else in the given one."""
        return QuietHours(self.from_, self.to, self.timezone or timezone)


class WarmArguments(Model):
    """Keep spare runners for an entity's labels."""

    entity: Login
    labels: list[str] = Field(min_length=1)
    runners: int = Field(ge=1, le=100)
    for_: Duration = Field(alias="for")
    repo: Repo | None = None


class DispatchArguments(Model):
    """Start a workflow."""

    repo: Repo
    workflow: Workflow
    ref: str = Field(min_length=1, max_length=250)
    inputs: dict[str, str | int | float | bool] = Field({}, max_length=MOST_INPUTS)


class HoldArguments(Model):
    """Which pool or entity is paused or resumed."""

    pool: str | None = None
    entity: Login | None = None
    for_: Duration | None = Field(None, alias="for")


class DrainArguments(Model):
    """Which board gets no new job."""

    board: str = Field(min_length=1, max_length=253)
    for_: Duration | None = Field(None, alias="for")


class NoArguments(Model):
    """Nothing."""


ARGUMENTS: Mapping[Action, type[Model]] = {
    Action.WARM: WarmArguments,
    Action.DISPATCH: DispatchArguments,
    Action.PAUSE: HoldArguments,
    Action.RESUME: HoldArguments,
    Action.DRAIN: DrainArguments,
    Action.PRUNE: NoArguments,
}


class ScheduleEntry(Model):
    """One schedule."""

    name: Name
    type: ScheduleType
    spec: str = Field(min_length=1, max_length=200)
    timezone: Zone = "UTC"
    action: Action
    with_: dict[str, Any] = Field({}, alias="with")
    catch_up: CatchUp = CatchUp.SKIP
    catch_up_cap: int | None = Field(None, ge=1, le=100)
    quiet_hours: Hours | None = None
    jitter: int = Field(0, ge=0, le=10)
    priority: int = Field(10, ge=1, le=10)
    enabled: bool = True

    def as_domain(self) -> Definition:
        """The schedule as decisions need it."""
        return Definition(
            name=self.name,
            type=self.type.value,
            spec=self.spec,
            action=self.action,
            arguments=_plain(ARGUMENTS[self.action].model_validate(self.with_)),
            timezone=self.timezone,
            catch_up=self.catch_up,
            catch_up_cap=self.catch_up_cap or 1,
            quiet_hours=self.quiet_hours.as_domain(self.timezone) if self.quiet_hours else None,
            jitter=self.jitter,
            priority=self.priority,
            enabled=self.enabled,
        )


def _plain(arguments: Model) -> dict[str, Any]:
    """The arguments as they are stored: JSON, with durations in seconds and labels in the compared form."""
    values = arguments.model_dump(by_alias=True, exclude_none=True)
    if isinstance(arguments, WarmArguments):
        values["labels"] = list(normalise_labels(arguments.labels))
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in values.items()
    }


Sentence = Callable[[tuple[int | str, ...], str, str], str]


def schedule_mistakes(
    raw: Mapping[str, Any], place: str, pools: Mapping[str, Iterable[LabelSet]], sentence: Sentence
) -> list[str]:
    """What only a second look finds: the spec by its type, the arguments by their action."""
    return [
        *_spec_mistakes(raw, place),
        *_argument_mistakes(raw, place, pools, sentence),
        *quiet_mistakes(raw.get("quietHours"), place),
        *_cap_mistakes(raw, place),
    ]


def _spec_mistakes(raw: Mapping[str, Any], place: str) -> list[str]:
    kind, spec, timezone = raw.get("type"), raw.get("spec"), raw.get("timezone", "UTC")
    if not (isinstance(kind, str) and isinstance(spec, str) and isinstance(timezone, str)):
        return []
    if kind not in set(ScheduleType):
        return []
    try:
        check_timezone(timezone)
    except ValueError:
        timezone = "UTC"  # a mistake of its own
    try:
        check_spec(ScheduleType(kind), spec, timezone)
    except ValueError as error:
        return [f"{place}spec: {error}"]
    return []


def _argument_mistakes(
    raw: Mapping[str, Any], place: str, pools: Mapping[str, Iterable[LabelSet]], sentence: Sentence
) -> list[str]:
    given = raw.get("with", {})
    action = raw.get("action")
    if not isinstance(action, str) or action not in set(Action) or not isinstance(given, dict):
        return []
    place = f"{place}with."
    try:
        arguments = ARGUMENTS[Action(raw["action"])].model_validate(given)
    except ValidationError as error:
        return [place + sentence(item["loc"], item["type"], item["msg"]) for item in error.errors()]
    match arguments:
        case HoldArguments(for_=timedelta() as span) | DrainArguments(for_=timedelta() as span) if (
            span > LONGEST_HOLD
        ):
            return [f"{place}for: expected at most {show_duration(LONGEST_HOLD)}"]
        case HoldArguments(pool=None, entity=None):
            return [f"{place}pool: missing; expected a pool or an entity"]
        case HoldArguments(pool=str(), entity=str()):
            return [f"{place}entity: expected a pool or an entity, not both"]
        case HoldArguments(pool=str(pool)) if pool not in pools:
            return [f"{place}pool: there is no pool {pool}"]
        case WarmArguments():
            return _warm_mistakes(arguments, place, pools)
    return []


def _warm_mistakes(
    arguments: WarmArguments, place: str, pools: Mapping[str, Iterable[LabelSet]]
) -> list[str]:
    mistakes = []
    labels = normalise_labels(arguments.labels)
    if not any(labels in served for served in pools.values()):
        mistakes.append(f"{place}labels: no pool serves [{', '.join(labels)}]")
    if arguments.for_ > LONGEST_WINDOW:
        mistakes.append(f"{place}for: expected at most {show_duration(LONGEST_WINDOW)}")
    owner = (arguments.repo or "").partition("/")[0]
    if owner and owner.lower() != arguments.entity.lower():
        mistakes.append(f"{place}repo: {arguments.repo} does not belong to {arguments.entity}")
    return mistakes


def quiet_mistakes(given: object, place: str) -> list[str]:
    """Hours that begin when they end would be never or always."""
    if isinstance(given, dict) and given.get("from") is not None and given.get("from") == given.get("to"):
        return [f"{place}quietHours.to: expected another time than from"]
    return []


def _cap_mistakes(raw: Mapping[str, Any], place: str) -> list[str]:
    capped, cap = raw.get("catchUp") == CatchUp.RUN_ALL_CAPPED, raw.get("catchUpCap")
    if capped and cap is None:
        return [f"{place}catchUpCap: missing; run_all_capped needs how many times run at most"]
    if not capped and cap is not None:
        return [f"{place}catchUpCap: only run_all_capped has a cap"]
    return []
