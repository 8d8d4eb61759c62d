"""File + environment → frozen values, with all mistakes found at once, each with its key and what was expected."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from controller.domain.jobs import LabelSet, normalise_labels
from controller.domain.workers import NAME_SUFFIX_LENGTH
from controller.errors import ConfigError
from controller.ports import Secret
from controller.settings.file import POD_NAME_LIMIT, File, label_sets
from controller.settings.schedules import ScheduleEntry, quiet_mistakes, schedule_mistakes


class Settings(BaseModel):
    """Everything the program was told."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    file: File
    database_url: Secret
    webhook_secrets: tuple[Secret, ...] = ()
    admin_token: Secret | None = None
    release: str = ""  # namespace/name of the chart's release that this process belongs to


def load_settings(path: Path | None, env: Mapping[str, str], *, needs: frozenset[str]) -> Settings:
    """Read file and environment; ConfigError lists every mistake. `needs` names the required secrets."""
    mistakes: list[str] = []
    file = _load_file(path, env, mistakes)
    for name, meaning in REQUIRED_SECRETS.items():
        if name in needs and not env.get(name, "").strip():
            mistakes.append(f"${name}: not set; expected {meaning}")
    url = env.get("DATABASE_URL", "").strip()
    if url and not re.match(r"postgres(ql)?://|\w+\s*=", url):
        mistakes.append(f"$DATABASE_URL: not an address; expected {REQUIRED_SECRETS['DATABASE_URL']}")
    if mistakes or file is None:
        raise ConfigError(mistakes)
    return Settings(
        file=file,
        database_url=Secret(url),
        webhook_secrets=tuple(Secret(word) for word in env.get("GITHUB_WEBHOOK_SECRET", "").split()),
        admin_token=Secret(token) if (token := env.get("SWITCHBOARD_ADMIN_TOKEN", "").strip()) else None,
        release=env.get("SWITCHBOARD_RELEASE", ""),
    )


REQUIRED_SECRETS = {
    "DATABASE_URL": "the PostgreSQL address, postgresql://user:password@host/database",
    "GITHUB_WEBHOOK_SECRET": "the webhook secret of the GitHub Apps (several separated by spaces)",
}


def _load_file(path: Path | None, env: Mapping[str, str], mistakes: list[str]) -> File | None:
    path = path or (Path(env["SWITCHBOARD_CONFIG"]) if env.get("SWITCHBOARD_CONFIG") else None)
    if path is None:
        mistakes.append("--config: no settings file; give --config FILE or set $SWITCHBOARD_CONFIG")
        return None
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        mistakes.append(f"{path}: cannot be read: {error}")
        return None
    except yaml.YAMLError as error:
        mistakes.append(f"{path}: is not YAML: {' '.join(str(error).split())}")
        return None
    if not isinstance(raw, dict):
        mistakes.append(f"{path}: expected a mapping of settings")
        return None
    return parse_file(raw, mistakes)


def parse_file(raw: dict[str, Any], mistakes: list[str]) -> File | None:
    """Check a settings mapping; every mistake is appended with its key and what was expected."""
    file: File | None = None
    try:
        file = File.model_validate(raw)
    except ValidationError as error:
        mistakes.extend(sentence(item["loc"], item["type"], item["msg"]) for item in error.errors())
    mistakes.extend(_cross_check(raw))
    if file is not None and len(file.names.stem) + 1 + NAME_SUFFIX_LENGTH > POD_NAME_LIMIT:
        mistakes.append("github.runnerNamePrefix: with the environment it is too long for a pod name (63)")
    return None if mistakes else file


def sentence(place: tuple[int | str, ...], kind: str, message: str) -> str:
    """A mistake that pydantic found, in our words."""
    key = ".".join(str(part) for part in place if part != "[key]")
    if kind == "extra_forbidden":
        return f"{key}: unknown key"
    if kind == "missing":
        return f"{key}: missing; expected a value"
    return f"{key}: {message.removeprefix('Value error, ')}"


def _cross_check(raw: dict[str, Any]) -> list[str]:
    """Mistakes between pools, found even when another part of the file is wrong."""
    mistakes: list[str] = []
    names: dict[str, int] = {}
    owners: dict[LabelSet, str] = {}
    pools = raw.get("pools")
    for index, pool in enumerate(pools if isinstance(pools, list) else []):
        if not isinstance(pool, dict) or not isinstance(pool.get("name"), str):
            continue
        name = pool["name"]
        if name in names:
            mistakes.append(f"pools.{index}.name: {name} is used twice; expected a unique name")
        names[name] = index
        sets = label_sets(pool.get("labels"))
        for labels in sets if isinstance(sets, list) else []:
            if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
                continue
            key = normalise_labels(labels)
            if owners.setdefault(key, name) != name:
                mistakes.append(
                    f"pools.{index}.labels: [{', '.join(key)}] is served by pool {owners[key]} already"
                )
        mistakes.extend(quiet_mistakes(pool.get("quietHours"), f"pools.{index}."))
    return [*mistakes, *_schedule_mistakes(raw.get("schedules"), owners)]


def _schedule_mistakes(raw: object, owners: Mapping[LabelSet, str]) -> list[str]:
    """Mistakes within and between schedules."""
    mistakes: list[str] = []
    names: set[object] = set()
    pools: dict[str, list[LabelSet]] = {}
    for labels, pool in owners.items():
        pools.setdefault(pool, []).append(labels)
    for index, entry in enumerate(raw if isinstance(raw, list) else []):
        if not isinstance(entry, dict):
            continue
        name = entry.get("name")
        if isinstance(name, str) and name in names:
            mistakes.append(f"schedules.{index}.name: {name} is used twice; expected a unique name")
        names.add(name if isinstance(name, str) else None)
        mistakes.extend(schedule_mistakes(entry, f"schedules.{index}.", pools, sentence))
    return mistakes


def parse_schedule(raw: Mapping[str, Any], file: File) -> ScheduleEntry:
    """Check a schedule that was given to the API; ConfigError lists every mistake."""
    mistakes = [] if _storable(raw) else ["with: expected plain text"]
    entry: ScheduleEntry | None = None
    try:
        entry = ScheduleEntry.model_validate(raw)
    except ValidationError as error:
        mistakes.extend(sentence(item["loc"], item["type"], item["msg"]) for item in error.errors())
    pools = {pool.name: pool.label_sets for pool in file.pools}
    mistakes.extend(schedule_mistakes(raw, "", pools, sentence))
    if mistakes or entry is None:
        raise ConfigError(mistakes)
    return entry


def _storable(value: object) -> bool:
    """Whether the database takes every text in it: neither NUL nor half of a character."""
    match value:
        case str():
            return "\x00" not in value and value.encode(errors="ignore").decode() == value
        case dict():
            return all(_storable(each) for pair in value.items() for each in pair)
        case list():
            return all(_storable(each) for each in value)
    return True


def environment() -> Mapping[str, str]:
    """The process environment, read in one place."""
    return os.environ
