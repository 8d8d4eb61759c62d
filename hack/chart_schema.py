"""Write charts/switchboard/values.schema.json: from values.yaml and its comments, and from the program's settings.

The defaults give the types and the comments the descriptions, so that nothing can be undocumented; `config` is the
settings file and follows its models. `make chart-schema` writes it, tests/chart holds it to that.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from controller.settings import File

CHART = Path(__file__).resolve().parent.parent / "charts" / "switchboard"
SCHEMA = CHART / "values.schema.json"
SETTINGS = "config"

Schema = dict[str, Any]

# A schema has no words of its own; of two ways that both fail, the reader is told both.
NO_IMAGE = (
    "an image. Build and push one: make image IMAGE=REPOSITORY:TAG, then --set image.repository=REPOSITORY"
)
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
LIMITS: Mapping[str, Schema] = {
    "image.repository": {"anyOf": [{"minLength": 1}, {"const": NO_IMAGE}]},
    "image.digest": {"pattern": "^(sha256:[0-9a-f]{64})?$"},
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "mode": {"enum": ["split", "all"]},
    "imagePullSecrets": {"items": {"type": "string"}},
    "appKeys.files": {"additionalProperties": {"type": "string"}},
    "commonLabels": {"additionalProperties": {"type": "string"}},
    "runnerNamespace.podSecurityLevel": {"enum": ["privileged", "baseline", "restricted"]},
    "controller.replicas": {"minimum": 0},
    "controller.extraArgs": {"items": {"type": "string"}},
    "webhook.replicas": {"minimum": 0},
    "webhook.extraArgs": {"items": {"type": "string"}},
    "service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "service.port": PORT,
    "networkPolicy.egressPorts": {"items": PORT},
    "metrics.serviceMonitor.interval": {"pattern": "^[0-9]+(ms|s|m|h)$"},
    "metrics.prometheusRule.oldestWaitMinutes": {"minimum": 1},
    "trialDatabase.password": {"pattern": "^[A-Za-z0-9]*$"},
}
AS_IN_KUBERNETES = {"controller.resources", "webhook.resources", "trialDatabase.resources"}
AS_IN_KUBERNETES |= {"metrics.grafanaDashboard.labels"}
TYPES = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}


def make_schema() -> Schema:
    """The whole schema."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    definitions, settings = settings_schema()
    schema = _object(yaml.safe_load(text), comments(text), "", settings)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart switchboard",
        "required": ["image", SETTINGS],
        **schema,
        "definitions": definitions,
    }


def comments(text: str) -> dict[str, str]:
    """The comment above each key of a YAML text, by the key's path."""
    found: dict[str, str] = {}
    above: list[str] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        comment = re.match(r"\s*# ?(.*)", line)
        key = re.match(r"(\s*)([\w.-]+):", line)
        if comment:
            above.append(comment[1])
        elif key:
            path = [(depth, name) for depth, name in path if depth < len(key[1])] + [(len(key[1]), key[2])]
            found[".".join(name for _, name in path)] = " ".join(above)
            above = []
        else:
            above = []
    return found


def settings_schema() -> tuple[Schema, Schema]:
    """The definitions of the settings' models, and the settings file itself."""
    schema = _plain(File.model_json_schema(by_alias=True, ref_template="#/definitions/{model}"))
    definitions: Schema = schema.pop("$defs")
    words = {"type": "array", "items": {"type": "string"}}
    # Where the program takes more than one form, so does the schema.
    definitions["Pool"]["properties"]["labels"]["items"] = {"anyOf": [{"type": "string"}, words]}
    definitions["App"]["properties"]["appId"] = {"type": ["string", "integer"]}
    return definitions, schema


def _plain(schema: Any) -> Any:
    """Without titles, defaults and formats, which only repeat or restrict what the program says better."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("title", "default", "format")}
    if "properties" in schema:
        return {**_plain({k: v for k, v in kept.items() if k != "properties"}), **_properties(schema)}
    return {key: _plain(value) for key, value in kept.items()}


def _properties(schema: Schema) -> Schema:
    return {"properties": {name: _plain(field) for name, field in schema["properties"].items()}}


def _object(values: Mapping[str, Any], described: Mapping[str, str], place: str, settings: Schema) -> Schema:
    properties: Schema = {}
    for name, value in values.items():
        path = f"{place}{name}"
        if path == SETTINGS:
            properties[name] = {**settings, "description": described[path]}
            continue
        if isinstance(value, dict) and value and path not in AS_IN_KUBERNETES:
            field = _object(value, described, f"{path}.", settings)
        else:
            field = {"type": TYPES[type(value)], **LIMITS.get(path, {})}
            if not described[path]:
                raise ValueError(f"values.yaml: {path} has no comment")
        properties[name] = {**field, **({"description": described[path]} if described[path] else {})}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def rendered() -> str:
    """The file's text."""
    return json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(rendered(), encoding="utf-8")
