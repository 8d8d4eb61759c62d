"""The way to the API server: the pod's service account, or a kubeconfig file."""

import os
from pathlib import Path

import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import (
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)

from controller.errors import ConfigError, clip

DEFAULT_KUBECONFIG = "~/.kube/config"
ACCOUNT = Path(SERVICE_TOKEN_FILENAME).parent  # where the kubelet puts a pod's token and the authority


async def connect(kubeconfig: Path | None, account: Path = ACCOUNT) -> ApiClient:
    """Open a client: in a pod by its service account, whose token is re-read as it rotates, else a file."""
    configuration = Configuration()
    token, authority = account / "token", account / "ca.crt"
    inside = kubeconfig is None and bool(os.environ.get(SERVICE_HOST_ENV_NAME)) and token.is_file()
    source = str(token) if inside else _kubeconfig(kubeconfig)
    try:
        if inside:
            loader = InClusterConfigLoader(str(token), str(authority))  # type: ignore[no-untyped-call]
            loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
            # $HTTPS_PROXY is the way to GitHub: no proxy leads back into the cluster.
            configuration.client_session_kwargs = {"trust_env": False}
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
