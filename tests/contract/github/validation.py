"""Strict validators for the simulated GitHub, built on GitHub's own schemas; every test that runs it installs them.

GitHub forbids additional properties nowhere; here they are forbidden everywhere, to catch imagined fields.
"""

import json
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator

from controller.simulators.github.state import Json

SCHEMAS = Path(__file__).parent.parent / "schemas" / "github"

# Codes that GitHub gives without documenting them, from anything …
UNDOCUMENTED = frozenset({400, 401, 403, 404, 410, 429, 500, 502, 503, 504})
# … and from some operations.
UNDOCUMENTED_HERE = frozenset(
    {
        ("POST", "/orgs/{org}/actions/runner-groups", 409),
        ("POST", "/orgs/{org}/actions/runner-groups", 422),
        ("POST", "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches", 422),
        ("GET", "/repos/{owner}/{repo}/actions/runs", 422),
    }
)
ERROR_SCHEMAS = {422: "validation-error-simple"}


class ContractViolation(AssertionError):
    """The simulator said something that GitHub would not, or was asked in a way that GitHub does not know."""


FORMATS = FormatChecker(formats=())


@FormatChecker.checks(FORMATS, "date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@FormatChecker.checks(FORMATS, "uri")
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or (bool(urlsplit(value).scheme) and not set(value) & set(" {}"))


def closed(schema: Any, *, inside_all_of: bool = False) -> Any:
    """The schema with additional properties forbidden; parts of an allOf are closed as a whole."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: [closed(part, inside_all_of=True) for part in value] if key == "allOf" else closed(value)
        for key, value in schema.items()
    }
    if "allOf" in result:
        result.setdefault("unevaluatedProperties", False)
    elif isinstance(result.get("properties"), dict) and "type" in result and not inside_all_of:
        result.setdefault("additionalProperties", False)
    return result


@cache
def _rest() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / "rest-subset.openapi31.json").read_text())
    # API version 2026-03-10 has no `rate` here.
    document["components"]["schemas"]["rate-limit-overview"]["required"].remove("rate")
    return document


@cache
def _components() -> dict[str, Any]:
    return {name: closed(schema) for name, schema in _rest()["components"]["schemas"].items()}


def _validator(schema: dict[str, Any]) -> Validator:
    whole = {"components": {"schemas": _components()}, **closed(schema)}
    return Draft202012Validator(whole, format_checker=FORMATS)


@cache
def _response(method: str, template: str, status: int) -> Validator | None:
    """What the body must look like; None: there is no body."""
    operation = _rest()["paths"].get(template, {}).get(method.lower())
    if operation is None:
        raise ContractViolation(f"GitHub has no {method} {template}")
    documented = operation["responses"].get(str(status))
    if documented is not None:
        if "$ref" in documented:
            documented = _rest()["components"]["responses"][documented["$ref"].rsplit("/", 1)[1]]
        if not documented.get("content"):
            return None
        return _validator(next(iter(documented["content"].values()))["schema"])
    if status == 304 and method == "GET":
        return None
    moved = status == (301 if method == "GET" else 307) and "{repo}" in template
    if status in UNDOCUMENTED or moved or (method, template, status) in UNDOCUMENTED_HERE:
        name = ERROR_SCHEMAS.get(status, "basic-error")
        return _validator({"$ref": f"#/components/schemas/{name}"})
    raise ContractViolation(f"{status} is neither documented nor on the allow-list")


@cache
def _request(method: str, template: str) -> Validator | None:
    body = _rest()["paths"][template][method.lower()].get("requestBody")
    return None if body is None else _validator(body["content"]["application/json"]["schema"])


def _check(validator: Validator | None, value: Any, what: str) -> None:
    if validator is None:
        if value is not None:
            raise ContractViolation(f"{what}: there is no body here, not {value!r}")
        return
    error = best_match(validator.iter_errors(value))
    if error is not None:
        raise ContractViolation(f"{what}: {error.json_path}: {error.message[:500]}")


def strict_validator() -> Callable[[str, str, int, object, object], None]:
    """For `sim.validator`: judges an answer, and the request body of what succeeded."""

    def validate(method: str, template: str, status: int, request: object, answer: object) -> None:
        _check(_response(method, template, status), answer, "answer")
        if status < 300 and request is not None:
            _check(_request(method, template), request, "request")

    return validate


@cache
def _webhook(event: str, action: str | None) -> tuple[Validator, Validator]:
    """GitHub's own schema and Octokit's; neither file has `unsuspend`, which looks like `created`."""
    both = json.loads((SCHEMAS / "webhook-schemas.json").read_text())
    known = "created" if (event, action) == ("installation", "unsuspend") else action
    theirs = "webhook-" + "-".join(filter(None, (event, known))).replace("_", "-")
    octokits = f"{event}${known or 'event'}"
    github, octokit = both["github"]["definitions"], both["octokit"]["definitions"]
    if theirs not in github or octokits not in octokit:
        raise ContractViolation(f"GitHub has no webhook {event} {action}")
    if known != action:
        for schema in (github[theirs], octokit[octokits]):
            schema["properties"]["action"] = {"type": "string", "enum": [action]}
    closed_github = {name: closed(schema) for name, schema in github.items()}
    return (
        Draft202012Validator(
            {"definitions": closed_github, "$ref": f"#/definitions/{theirs}"}, format_checker=FORMATS
        ),
        Draft7Validator(
            {"definitions": octokit, "$ref": f"#/definitions/{octokits}"}, format_checker=FORMATS
        ),
    )


def strict_webhook_validator() -> Callable[[str, Json], None]:
    """For `sim.webhook_validator`: judges a webhook by GitHub's and by Octokit's schemas."""

    def validate(event: str, payload: Json) -> None:
        action = payload.get("action")
        github, octokit = _webhook(event, action if isinstance(action, str) else None)
        _check(github, payload, "GitHub's schema")
        _check(octokit, payload, "Octokit's schema")

    return validate
