"""The way to the API server: the pod's service account, or a kubeconfig file."""

import os
from pathlib import Path

import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME, SERVICE_TOKEN_FILENAME

from controller.errors import ConfigError, clip

DEFAULT_KUBECONFIG = "~/.kube/config"


async def connect(kubeconfig: Path | None) -> ApiClient:
    """Open a client: in a pod by its service account, whose token is re-read as it rotates, else a file."""
    configuration = Configuration()
    inside = kubeconfig is None and _in_a_pod()
    source = SERVICE_TOKEN_FILENAME if inside else _kubeconfig(kubeconfig)
    try:
        if inside:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=source, client_configuration=configuration, persist_config=False
            )
    except yaml.YAMLError:
        # Its text quotes the file, which holds credentials; so does its chain.
        raise ConfigError([f"kubernetes: {source} leads to no API server: it is no YAML"]) from None
    except (ConfigException, OSError, TypeError) as error:
        why = clip(f"kubernetes: {source} leads to no API server: {type(error).__name__}: {error}")
        raise ConfigError([why]) from error
    return ApiClient(configuration)


def _kubeconfig(given: Path | None) -> str:
    return str(given or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG)


def _in_a_pod() -> bool:
    return bool(os.environ.get(SERVICE_HOST_ENV_NAME)) and Path(SERVICE_TOKEN_FILENAME).is_file()
