"""Before every request: who sends it, and whether they may. What says nothing of it is for administrators alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pincompute.api.identity import Identity
from pincompute.planning.rights import Verb
from pincompute.submission.people.door import Door, Shown
from pincompute.submission.rights import Rights

H = TypeVar("H", bound=Callable[..., Any])

WHO = web.RequestKey("who", Identity)
SIGNED_IN: Final = "signed in"
"""Whoever the desk knows."""
NOTHING: Final = "nothing"
"""Nor does anybody have to say who they are."""
_NEEDS = "needs"


def needs(what: Verb | str) -> Callable[[H], H]:
    """What whoever asks a route must be allowed to, in the project that its path names."""

    def marked(handler: H) -> H:
        setattr(handler, _NEEDS, what)
        return handler

    return marked


def guards(door: Door, rights: Rights) -> list[Middleware]:
    @web.middleware
    async def known(request: web.Request, handler: Handler) -> web.StreamResponse:
        if needed(request) != NOTHING:
            request[WHO] = await door.identify(Shown.by(request))
        return await handler(request)

    @web.middleware
    async def allowed(request: web.Request, handler: Handler) -> web.StreamResponse:
        what = needed(request)
        if isinstance(what, Verb):
            await rights.demand(request[WHO], what, request.match_info.get("project", ""))
        return await handler(request)

    return [known, allowed]


def needed(request: web.Request) -> Verb | str:
    """Of a path that is not there, to be known is enough to learn that it is not."""
    if request.match_info.http_exception is not None:
        return SIGNED_IN
    found: Verb | str = getattr(request.match_info.handler, _NEEDS, Verb.ADMINISTER)
    return found
