"""Kubernetes, spoken to through the official client's asyncio flavour; nothing else imports that client."""

from controller.gateways.kubernetes.connection import connect
from controller.gateways.kubernetes.gateway import KubernetesGateway
from controller.gateways.kubernetes.watch import WatchLimits

__all__ = ["KubernetesGateway", "WatchLimits", "connect"]
