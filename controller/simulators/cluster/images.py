"""Which images there are: each is a program, and everything else cannot be pulled."""

import re

from controller.simulators.cluster.programs import Program

REFERENCE = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*(?::\w[\w.-]{0,127})?(?:@sha256:[a-f0-9]{64})?"
)
EVERY_IMAGE = "*"


class ImageError(Exception):
    """An image that cannot be had; `reason` is the container's waiting reason."""

    def __init__(self, reason: str, message: str, event: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.event = event
        self.final = final


class Images:
    """The registry: programs by image, and optionally one for all others."""

    def __init__(self) -> None:
        self.programs: dict[str, Program] = {}
        self.default: Program | None = None

    def program(self, image: str) -> Program:
        """The program of an image; ImageError without one."""
        program = self.programs.get(image, self.default)
        if program is None:
            why = (
                f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": not found'
            )
            raise ImageError("ErrImagePull", why, f'Failed to pull image "{image}": {why}')
        return program

    def fetch(self, image: str, broken: str | None) -> Program:
        """The program of an image, unless the board cannot pull it."""
        if broken in (image, EVERY_IMAGE):
            why = f'failed to pull and unpack image "{image}": connection reset by peer'
            raise ImageError("ErrImagePull", why, f'Failed to pull image "{image}": {why}')
        return self.program(image)

    @staticmethod
    def check_name(image: str) -> None:
        """Refuse what no registry could hold."""
        if not REFERENCE.fullmatch(image):
            why = f'Failed to apply default image tag "{image}": couldn\'t parse image name: invalid reference format'
            raise ImageError("InvalidImageName", why, why, final=True)

    @staticmethod
    def check_policy(image: str, policy: str) -> None:
        """Refuse to pull what may not be pulled."""
        if policy == "Never":
            why = f'Container image "{image}" is not present with pull policy of Never'
            raise ImageError("ErrImageNeverPull", why, why, final=True)
