"""Before every request: who sends it, and whether they may; and while it lasts, whether they still may.

What says nothing of it is for administrators alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pincompute.api.identity import Identity
from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.planning.rights import Verb
from pincompute.submission.people.door import Door, Shown
from pincompute.submission.queue import Busy
from pincompute.submission.rights import Rights

H = TypeVar("H", bound=Callable[..., Any])

WHO = web.RequestKey("who", Identity)
LAPSE: web.RequestKey[Callable[[], Coroutine[Any, Any, None]]] = web.RequestKey("lapse")
"""Is refused as soon as whoever asked may no longer, and never ends otherwise: no stream outlives a login or a role."""
AGAIN = 15.0
"""Seconds until it is looked at once more."""
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


def guards(door: Door, rights: Rights, clock: Clock) -> list[Middleware]:
    @web.middleware
    async def known(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (what := needed(request)) != NOTHING:
            shown, project = Shown.by(request), _project(request)
            request[WHO] = await door.identify(shown)
            # It holds nothing of the request, which would else be garbage that only a search finds.
            request[LAPSE] = partial(_lapse, clock, partial(again, shown, what, project))
        return await handler(request)

    @web.middleware
    async def allowed(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.get(WHO):
            await demand(request[WHO], needed(request), _project(request))
        return await handler(request)

    async def demand(who: Identity, what: Verb | str, project: str) -> None:
        if isinstance(what, Verb):
            await rights.demand(who, what, project)

    async def again(shown: Shown, what: Verb | str, project: str) -> None:
        await demand(await door.identify(shown), what, project)

    return [known, allowed]


async def _lapse(clock: Clock, again: Callable[[], Awaitable[None]]) -> None:
    while True:
        await clock.sleep(AGAIN)
        try:
            await again()
        except Refused as refused:
            # Who cannot say just now has not said no.
            if refused.problems[0].reason.http < 500 and not isinstance(refused, Busy):
                raise


def _project(request: web.Request) -> str:
    return request.match_info.get("project", "")


def needed(request: web.Request) -> Verb | str:
    """Of a path that is not there, to be known is enough to learn that it is not; in which way one that is there is
    asked the description tells everybody."""
    if isinstance(request.match_info.http_exception, web.HTTPMethodNotAllowed):
        return NOTHING
    if request.match_info.http_exception is not None:
        return SIGNED_IN
    return needed_by(request.match_info.handler)


def needed_by(handler: object) -> Verb | str:
    found: Verb | str = getattr(handler, _NEEDS, Verb.ADMINISTER)
    return found
