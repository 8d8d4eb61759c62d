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
    try:
        if kubeconfig is None and _in_a_pod():
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            file = str(kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG)
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=file, client_configuration=configuration, persist_config=False
            )
    except (ConfigException, OSError, yaml.YAMLError) as error:
        raise ConfigError([clip(f"kubernetes: no way to the API server: {error}")]) from error
    return ApiClient(configuration)


def _in_a_pod() -> bool:
    return bool(os.environ.get(SERVICE_HOST_ENV_NAME)) and Path(SERVICE_TOKEN_FILENAME).is_file()
