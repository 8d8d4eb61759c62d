"""What the program was told. Pydantic is used only here and for API bodies."""

from controller.settings.file import (
    Access,
    App,
    File,
    Pool,
    WebhookMode,
)
from controller.settings.load import Settings, environment, load_settings, parse_file, parse_schedule

__all__ = [
    "Access",
    "App",
    "File",
    "Pool",
    "Settings",
    "WebhookMode",
    "environment",
    "load_settings",
    "parse_file",
    "parse_schedule",
]
