"""Where this is reached: behind a proxy that ends TLS, addresses still begin with https."""

from starlette.datastructures import URL
from starlette.requests import Request


def encrypted(request: Request) -> bool:
    """Whether the reader came by HTTPS, also through a proxy; whoever claims so wrongly only misleads themselves."""
    forwarded = request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip()
    return "https" in (request.url.scheme, forwarded)


def base_url(request: Request) -> str:
    """What addresses of ours begin with, as the reader sees them."""
    scheme = "https" if encrypted(request) else request.url.scheme
    return str(request.base_url.replace(scheme=scheme)).rstrip("/")


def relative(url: URL) -> str:
    """The same address without scheme and host."""
    return str(url.replace(scheme="", netloc=""))
