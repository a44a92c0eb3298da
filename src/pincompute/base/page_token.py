"""Bearer token of the pages of a process that name workloads of all projects: metrics and pass history."""

from __future__ import annotations

import hmac
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

PROBES = frozenset({"/healthz", "/readyz"})
"""Pages for probes, which send no token. They contain counts, and no name of a project or workload."""
OPTION = "--token-file"
_SCHEME = "bearer"
_NEXT = "next: write a token into it; on an installed cluster, create the Secret pincompute-metrics"


def token_middlewares(file: Path | None) -> tuple[Middleware, ...]:
    """Middleware that answers 401 without the token of the file, also for unknown paths. None without a file."""
    if file is None:
        return ()

    @web.middleware
    async def require_token(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _route_path(request) not in PROBES and (why := _rejection(request, file)):
            return web.Response(status=401, text=f"{why}\n", headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    return (require_token,)


def _route_path(request: web.Request) -> str:
    """Path of the route that handles the request, which no spelling of the request's path changes."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else ""


def _rejection(request: web.Request, file: Path) -> str:
    """Why the request is rejected; empty if it has the token."""
    # Read for each request, because a renewed Secret replaces the file of a running process.
    try:
        token = file.read_bytes().strip()
    except OSError as error:
        return f"no token is accepted: the file of {OPTION} cannot be read: {error.strerror}\n{_NEXT}"
    if not token:
        # It would be equal to the token of a request without one.
        return f"no token is accepted: the file of {OPTION} is empty\n{_NEXT}"
    if hmac.compare_digest(_sent_token(request), token):
        return ""
    return (
        f"token missing or wrong: send the header 'Authorization: Bearer TOKEN' with the token in the file of {OPTION}"
    )


def _sent_token(request: web.Request) -> bytes:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    # Bytes that are no UTF-8 are surrogates in the header.
    return token.strip().encode(errors="surrogateescape") if scheme.lower() == _SCHEME else b""
