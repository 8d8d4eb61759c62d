"""The environment of a container, with its references to Secrets and to the pod resolved."""

import base64

from controller.simulators.cluster.objects import SECRETS, Json, key_of, node_of, uid_of
from controller.simulators.cluster.store import Store


class ConfigError(Exception):
    """A reference leads nowhere; the container cannot be created yet."""


def resolve_env(store: Store, pod: Json) -> dict[str, str]:
    """All variables of the first container."""
    env: dict[str, str] = {}
    for variable in pod["spec"]["containers"][0].get("env") or ():
        source = variable.get("valueFrom")
        value = variable.get("value", "") if source is None else _look_up(store, pod, source)
        if value is not None:
            env[variable["name"]] = value
    return env


def _look_up(store: Store, pod: Json, source: Json) -> str | None:
    if "secretKeyRef" in source:
        return _secret(store, key_of(pod)[0], source["secretKeyRef"])
    if "fieldRef" in source:
        return _field(pod, str(source["fieldRef"].get("fieldPath")))
    raise ConfigError(f"no such source here: {', '.join(source)}")


def _secret(store: Store, namespace: str, reference: Json) -> str | None:
    name, key = reference["name"], reference["key"]
    secret = store.find(SECRETS, namespace, name)
    data = (secret or {}).get("data") or {}
    if key in data:
        return base64.b64decode(data[key]).decode()
    if reference.get("optional"):
        return None
    if secret is None:
        raise ConfigError(f'secret "{name}" not found')
    raise ConfigError(f"couldn't find key {key} in Secret {namespace}/{name}")


def _field(pod: Json, path: str) -> str:
    namespace, name = key_of(pod)
    fields = {"metadata.name": name, "metadata.namespace": namespace, "metadata.uid": uid_of(pod)}
    fields |= {"spec.nodeName": node_of(pod), "status.hostIP": pod["status"].get("hostIP", "")}
    if path not in fields:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return str(fields[path])
