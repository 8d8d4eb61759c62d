"""Who may be served: whether a delivery's App is the one for its account, and whether its repository may run. Pure."""

from collections.abc import Callable, Mapping

from controller.domain.deliveries import InstallationNotice, JobNotice, Notice
from controller.domain.jobs import EntityType


def admit(
    notice: Notice, app_id: str, apps: Mapping[EntityType, str], allows: Callable[[str, str], bool]
) -> tuple[bool, bool]:
    """(known_app, allowed) for a delivery of this App; `apps` says which App serves which kind of account."""
    match notice:
        case JobNotice(entity=entity, repo=repo):
            return apps.get(entity.type) == app_id, allows(entity.name, repo)
        case InstallationNotice():
            return app_id in apps.values(), True
        case _:
            return True, True
