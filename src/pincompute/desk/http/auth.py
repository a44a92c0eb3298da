"""Authentication and authorization of requests, before the handler and as long as a stream lasts.

A handler without a declared permission requires administration, so that a forgotten declaration locks an endpoint.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pincompute.admission.authorization import Permission
from pincompute.api.identity import Identity
from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.base.reasons import UNAUTHENTICATED
from pincompute.desk.authn.authenticator import Authenticator, Credentials
from pincompute.desk.authn.sessions import SIGN_IN_HINT
from pincompute.desk.authorization import Authorizer
from pincompute.desk.http.same_origin import SESSION, require_session_origin
from pincompute.desk.limits.request_queue import Busy

H = TypeVar("H", bound=Callable[..., Any])

CALLER = web.RequestKey("caller", Identity)
ACCESS_REVOKED: web.RequestKey[Callable[[], Coroutine[Any, Any, None]]] = web.RequestKey("access_revoked")
"""A coroutine function that raises Refused as soon as the caller loses access, and never returns otherwise.

Streams run beside it, so that none outlives a login or a role."""
ACCESS_RECHECK_INTERVAL_S = 15.0
AUTHENTICATED: Final = "signed in"
"""Requires any known caller."""
PUBLIC: Final = "nothing"
"""Requires no authentication."""
_PERMISSION_ATTRIBUTE = "required_permission"


def requires(permission: Permission | str) -> Callable[[H], H]:
    """Declares the permission that a handler requires, in the project that the path names."""

    def decorate(handler: H) -> H:
        setattr(handler, _PERMISSION_ATTRIBUTE, permission)
        return handler

    return decorate


def auth_middlewares(
    authenticator: Authenticator, authorizer: Authorizer, clock: Clock
) -> tuple[Middleware, Middleware]:
    """Two middlewares: rate limits stand between them, as they need the caller, and authorization costs more."""

    @web.middleware
    async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (permission := required_permission(request)) != PUBLIC:
            credentials, project = authenticator.credentials_of(request), _project_of(request)
            if credentials.session:
                require_session_origin(request, credentials.session)
                request[SESSION] = credentials.session
            try:
                request[CALLER] = await authenticator.authenticate(credentials)
            except Refused as refused:
                raise _for_browser(request, refused) from refused
            # Must not capture `request`: it would create a reference cycle.
            recheck = partial(check_again, credentials, permission, project)
            request[ACCESS_REVOKED] = partial(_raise_when_revoked, clock, recheck)
        return await handler(request)

    @web.middleware
    async def authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.get(CALLER):
            await check(request[CALLER], required_permission(request), _project_of(request))
        return await handler(request)

    async def check(caller: Identity, permission: Permission | str, project: str) -> None:
        if isinstance(permission, Permission):
            await authorizer.authorize(caller, permission, project)

    async def check_again(credentials: Credentials, permission: Permission | str, project: str) -> None:
        await check(await authenticator.authenticate(credentials), permission, project)

    return authenticate, authorize


async def protect_session_answers(request: web.Request, response: web.StreamResponse) -> None:
    """Before an answer is sent: browsers must not guess its type, nor show one of a session after it has ended."""
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if SESSION in request:
        response.headers.setdefault("Cache-Control", "private, no-cache")


def _for_browser(request: web.Request, refused: Refused) -> Refused:
    """A refusal whose next step is that of a browser, if the request comes from one."""
    (problem, *_) = refused.problems
    if problem.reason is not UNAUTHENTICATED or "Sec-Fetch-Site" not in request.headers:
        return refused
    return Refused(problem._replace(next=SIGN_IN_HINT))


async def _raise_when_revoked(clock: Clock, recheck: Callable[[], Awaitable[None]]) -> None:
    while True:
        await clock.sleep(ACCESS_RECHECK_INTERVAL_S)
        try:
            await recheck()
        except Refused as refused:
            # A provider or cluster that does not respond now has not revoked anything.
            if refused.problems[0].reason.http_status < 500 and not isinstance(refused, Busy):
                raise


def _project_of(request: web.Request) -> str:
    return request.match_info.get("project", "")


def required_permission(request: web.Request) -> Permission | str:
    """Of the handler. Unknown paths require authentication; wrong methods nothing, as the OpenAPI page has them."""
    if isinstance(request.match_info.http_exception, web.HTTPMethodNotAllowed):
        return PUBLIC
    if request.match_info.http_exception is not None:
        return AUTHENTICATED
    return handler_permission(request.match_info.handler)


def handler_permission(handler: object) -> Permission | str:
    permission: Permission | str = getattr(handler, _PERMISSION_ATTRIBUTE, Permission.ADMINISTER)
    return permission
