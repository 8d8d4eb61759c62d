"""Container images written by hand: a tar of one layer, a config and a manifest, as `docker save` writes it.

So a node gets its images without a registry: `ctr images import` reads this form.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.packages import BUSYBOX

PAUSE = "switchboard.local/pause:1"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64"}
APPLETS = ("sh", "base64", "cat", "echo", "sed", "sleep", "wget", "kill", "test", "env", "tr", "date", "ls")


@dataclass(frozen=True, slots=True)
class Image:
    """busybox, a few files more, and what is started."""

    name: str
    entrypoint: Sequence[str]
    files: Mapping[str, bytes]  # path without the leading slash → content; all of them may be executed


PAUSE_IMAGE = Image(PAUSE, ("/bin/sleep", "infinity"), {})


def write_image(image: Image, file: Path) -> None:
    """Write the tar that `ctr images import` reads."""
    layer = _layer(image)
    config = _json(
        {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Entrypoint": list(image.entrypoint), "Env": ["PATH=/bin"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
    )
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = _json([{"Config": config_name, "RepoTags": [image.name], "Layers": ["layer.tar"]}])
    parts = {config_name: config, "layer.tar": layer, "manifest.json": manifest}
    with tarfile.open(file, "w") as archive:
        for name, content in parts.items():
            _add(archive, name, content)


def _layer(image: Image) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for folder in ("bin", "tmp", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        _add(archive, "bin/busybox", BUSYBOX.read_bytes())
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        for name, data in image.files.items():
            _add(archive, name, data)
    return content.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755
    archive.addfile(entry, io.BytesIO(content))


def _json(content: object) -> bytes:
    return json.dumps(content).encode()
