"""The README's table of settings holds every key with its true default."""

import re
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel

from controller.settings import File, parse_file
from controller.settings.schedules import Hours

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \| .+ \|$", re.MULTILINE)
LITERAL = re.compile(r"`([^`]*)`")
APP = {"appId": "1", "privateKeyFile": "key.pem"}
POOL = {"name": "a", "labels": ["riscv"], "image": "runner:1"}
HOURS = {"from": "22:00", "to": "06:00"}
SCHEDULE = {"name": "it", "type": "cron", "spec": "@daily", "action": "prune"}


def documented() -> dict[str, str]:
    """Each key of the table of settings with what stands under default."""
    table = README.partition("| key | default | meaning |")[2].partition("\n\n")[0]
    return {found[1]: found[2] for found in ROW.finditer(table)}


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, directly, in a list or mapping, or optionally."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, dict, UnionType):
        return next((model for part in get_args(annotation) if (model := model_in(part))), None)
    return None


def keys(model: type[BaseModel], place: str = "") -> set[str]:
    """Every key that the file may hold; `[]` follows a list and a word in angle brackets stands for any name."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        key = f"{place}{field.alias or name}"
        inner = model_in(field.annotation)
        kind = get_origin(field.annotation)
        suffix = "[]" if kind is list else ".<>" if kind is dict else ""
        found |= keys(inner, f"{key}{suffix}.") if inner else {key}
    return found


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """A mapping of dotted keys as the file has them."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        branch = tree
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = value
    return tree


def test_the_table_holds_exactly_the_keys_there_are() -> None:
    assert {re.sub("<.+>", "<>", key) for key in documented()} == keys(File)


def test_the_defaults_are_those_of_the_program() -> None:
    defaults = {
        key: yaml.safe_load(cell[1])
        for key, text in documented().items()
        if (cell := LITERAL.fullmatch(text))
    }
    pool = {
        key.removeprefix("pools[]."): value for key, value in defaults.items() if key.startswith("pools[].")
    }
    pool["registrationTimeout"] = None  # its default names another key
    pool |= {"quietHours": HOURS | {"timezone": pool.pop("quietHours.timezone")}}
    schedule = {
        key.removeprefix("schedules[]."): value
        for key, value in defaults.items()
        if key.startswith("schedules[].")
    }
    rest = {key: value for key, value in defaults.items() if "[]." not in key}
    lists = {"pools": [POOL | pool], "schedules": [SCHEDULE | schedule]}
    written_out = File.model_validate(nested(rest | {"github.apps": {"User": APP}, **lists}))
    quiet = POOL | {"quietHours": HOURS}
    small = {"github": {"apps": {"User": APP}}, "pools": [quiet], "schedules": [SCHEDULE]}
    assert written_out.pools[0].quiet_hours is not None
    assert written_out.pools[0].quiet_hours.as_domain() == Hours.model_validate(HOURS).as_domain()
    assert written_out.model_copy(update={"pools": []}) == File.model_validate(small).model_copy(
        update={"pools": []}
    )
    plain = [each.model_copy(update={"quiet_hours": None}) for each in written_out.pools]
    assert plain == [File.model_validate({**small, "pools": [POOL]}).pools[0]]


def test_the_example_of_schedules_is_a_good_one() -> None:
    example = README.partition("## Schedules")[2].partition("```yaml\n")[2].partition("```")[0]
    mistakes: list[str] = []
    pool = {"name": "scw-em-rv1", "labels": ["ubuntu-24.04-riscv"], "image": "runner:1"}
    parse_file({"github": {"apps": {"User": APP}}, "pools": [pool], **yaml.safe_load(example)}, mistakes)
    assert mistakes == []


def test_the_small_file_is_a_good_one() -> None:
    example = README.partition("```yaml\n")[2].partition("```")[0]
    assert File.model_validate(yaml.safe_load(example)).pools[0].name == "scw-em-rv1"
