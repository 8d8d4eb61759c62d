"""Sends deliveries cheaply: the machine is shared, and what a sender burns would be charged to the receiver."""

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

Delivery = tuple[bytes, dict[str, str]]  # body, headers


async def send_all(url: str, deliveries: Sequence[Delivery], at_once: int) -> None:
    """Send them all over so many kept connections; anything but an acceptance is a fault of the bench."""
    place = urlsplit(url)
    waiting = iter([_request(place.path, place.netloc, *each) for each in deliveries])

    async def sender() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        for request in waiting:  # shared: each takes the next one
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            status, _, fields = head.decode("ascii").partition("\r\n")
            if status.split()[1] not in ("200", "202"):
                raise RuntimeError(f"a delivery was answered with {status}")
            length = next(line for line in fields.lower().splitlines() if line.startswith("content-length:"))
            await reader.readexactly(int(length.partition(":")[2]))
        writer.close()

    async with asyncio.TaskGroup() as senders:
        for _ in range(at_once):
            senders.create_task(sender())


def _request(path: str, host: str, body: bytes, headers: dict[str, str]) -> bytes:
    fields = {"host": host, "content-length": str(len(body)), **headers}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + body
