"""Endpoints of browser sessions: sign in by a one-time link or at the OpenID provider, look, and sign out."""

from __future__ import annotations

import asyncio
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog
from aiohttp import web
from msgspec.json import Decoder

from pincompute.admission.authorization import Permission
from pincompute.api.identity import Identity, IdentityType
from pincompute.api.session import (
    CALLBACK_PATH,
    OPENID_PATH,
    EndedSessions,
    SessionCode,
    SessionInfo,
    SessionLink,
    SessionsQuery,
    SignInCallback,
    SignInQuery,
)
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    CROSS_SITE,
    DATABASE_FULL,
    DESK_BUSY,
    DOCUMENT_INVALID,
    FORBIDDEN,
    REQUEST_TIMEOUT,
    SESSION_LIMIT,
    SIGN_IN_NOT_CONFIGURED,
    SIGN_IN_UNAVAILABLE,
    SIGNED_IN_AS_OTHER,
    TOO_MANY_REQUESTS,
    UNAUTHENTICATED,
)
from pincompute.desk.authn.authenticator import SESSION_COOKIE, Authenticator, Credentials
from pincompute.desk.authn.sessions import ATTEMPT_COOKIE, ATTEMPT_LIFETIME_S, NewSession, csrf_token
from pincompute.desk.authn.throttle import AuthThrottle
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import AUTHENTICATED, CALLER, PUBLIC, requires
from pincompute.desk.http.endpoint import HTML, endpoint
from pincompute.desk.http.page_security import STATIC_POLICY, page_headers
from pincompute.desk.http.requests import decode_body, parse_query
from pincompute.desk.http.responses import json_response
from pincompute.desk.http.same_origin import SESSION, require_own_page
from pincompute.desk.limits.middleware import BODY_BYTES, BODY_TIMEOUT_S
from pincompute.desk.limits.rate_limiter import RateLimiter

if TYPE_CHECKING:
    from pincompute.desk.authn.code_flow import CodeFlow

MAX_CODE_BODY_BYTES = 1_024
AUDITED_REFUSALS_PER_S = 1 / 60
AUDITED_REFUSALS_BURST_S = 1_200.0
"""Refused sign-ins that the audit log has: twenty at once, then one a minute. Anyone can cause them, and the log only
grows. The desk's own log has all."""
_NO_STORE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_SIGN_IN_REASONS = (UNAUTHENTICATED, DOCUMENT_INVALID, TOO_MANY_REQUESTS, DESK_BUSY, SESSION_LIMIT, DATABASE_FULL)
_code = Decoder(SessionCode)
log = structlog.get_logger()


class SessionRoutes:
    def __init__(self, desk: Desk, authenticator: Authenticator, code_flow: CodeFlow | None = None) -> None:
        self._desk = desk
        self._authenticator = authenticator
        self._code_flow = code_flow
        self._refusals = RateLimiter(AUDITED_REFUSALS_PER_S, AUDITED_REFUSALS_BURST_S)

    def route_table(self) -> list[web.RouteDef]:
        return [
            web.get("/session", self.current),
            web.post("/session", self.sign_in),
            web.delete("/session", self.sign_out),
            web.post("/session/link", self.link),
            web.get(OPENID_PATH, self.openid),
            web.get(CALLBACK_PATH, self.callback),
            web.delete("/v1/sessions", self.end_all),
        ]

    @requires(AUTHENTICATED)
    @endpoint(response=SessionInfo, reasons=(CROSS_SITE,))
    async def current(self, request: web.Request) -> web.StreamResponse:
        """The session of this browser, with the value of the header `Pin-Csrf`."""
        caller = request[CALLER]
        until = caller.valid_until.isoformat() if caller.valid_until else ""
        return self._info_response(caller, request.get(SESSION, ""), until)

    @requires(AUTHENTICATED)
    @endpoint(response=SessionLink, status=201, reasons=(FORBIDDEN, SESSION_LIMIT))
    async def link(self, request: web.Request) -> web.StreamResponse:
        """A one-time link, which signs one browser in as the caller within a minute."""
        caller = request[CALLER]
        if request.get(SESSION) or caller.type is not IdentityType.PERSON:
            what = "a sign-in link is for a person with a bearer token"
            raise Refused(Problem(FORBIDDEN, what, next="pin open"))
        code, expires_at = await self._desk.sessions.create_link(caller)
        return _private(json_response(SessionLink(code=code, expires=expires_at.isoformat()), 201))

    @requires(PUBLIC)
    @endpoint(
        response=SessionInfo,
        request_body=SessionCode,
        example=SessionCode(code="dGhlIGNvZGUgb2YgYSBsaW5r"),
        reasons=(*_SIGN_IN_REASONS, SIGNED_IN_AS_OTHER, CROSS_SITE, REQUEST_TIMEOUT),
    )
    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        """Begin a session by the code of a one-time link. The answer sets its cookie."""
        require_own_page(request)
        request[BODY_BYTES] = await _read_code_body(request)
        code = decode_body(request, _code.decode, "invalid sign-in code").code
        credentials = self._authenticator.credentials_of(request)
        try:
            async with self._throttle.attempt(credentials._replace(token=code)):
                session = await self._desk.sessions.redeem_link(code, credentials)
        except Refused as refused:
            await self._report_refusal(refused, credentials)
            raise
        response = self._info_response(session.identity, session.token, session.expires_at.isoformat())
        return self._with_session(response, session)

    @requires(AUTHENTICATED)
    @endpoint(status=204, reasons=(CROSS_SITE,))
    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        """End the session of this browser, at once and at every desk."""
        if session := request.get(SESSION):
            await self._desk.sessions.end(session, request[CALLER])
        response = web.Response(status=204)
        response.del_cookie(SESSION_COOKIE, path="/", secure=True, httponly=True, samesite="Lax")
        return _private(response)

    @requires(AUTHENTICATED)
    @endpoint(response=EndedSessions, query=SessionsQuery, reasons=(CROSS_SITE, FORBIDDEN, DOCUMENT_INVALID))
    async def end_all(self, request: web.Request) -> web.StreamResponse:
        """End all sessions of the caller, or as an administrator of another user."""
        caller, user = request[CALLER], parse_query(request, SessionsQuery, "invalid user").user
        if user not in ("", str(caller)):
            await self._desk.authorizer.authorize(caller, Permission.ADMINISTER)
        user = user or str(caller)
        return _private(json_response(EndedSessions(user=user, ended=await self._desk.sessions.end_all(user, caller))))

    @requires(PUBLIC)
    @endpoint(status=303, query=SignInQuery, reasons=(SIGN_IN_NOT_CONFIGURED, SIGN_IN_UNAVAILABLE, DOCUMENT_INVALID))
    async def openid(self, request: web.Request) -> web.StreamResponse:
        """Go to the OpenID provider, and come back signed in."""
        query = parse_query(request, SignInQuery, "invalid sign-in")
        address, attempt = await self._required_flow.begin(query.return_to)
        response = web.Response(status=303, headers={"Location": address, **_NO_STORE})
        _set_cookie(response, ATTEMPT_COOKIE, attempt.encode(), ATTEMPT_LIFETIME_S)
        return response

    @requires(PUBLIC)
    @endpoint(
        status=303, query=SignInCallback, reasons=(*_SIGN_IN_REASONS, SIGN_IN_NOT_CONFIGURED, SIGN_IN_UNAVAILABLE)
    )
    async def callback(self, request: web.Request) -> web.StreamResponse:
        """The return from the OpenID provider. The answer sets the session's cookie."""
        credentials = self._authenticator.credentials_of(request)
        try:
            session, return_to = await self._finish(request, credentials)
        except Refused as refused:
            await self._report_refusal(refused, credentials)
            if "text/html" not in request.headers.get("Accept", ""):
                raise
            response = _refusal_page(request, refused)
        else:
            # Not an answer with the page itself: the code must not stay in the address.
            response = web.Response(status=303, headers={"Location": return_to, **_NO_STORE})
            self._with_session(response, session)
        response.del_cookie(ATTEMPT_COOKIE, path="/", secure=True, httponly=True, samesite="Lax")
        return response

    async def _finish(self, request: web.Request, credentials: Credentials) -> tuple[NewSession, str]:
        answer = parse_query(request, SignInCallback, "invalid answer of the provider")
        flow, cookie = self._required_flow, request.cookies.get(ATTEMPT_COOKIE, "")
        # An answer costs a request to the provider. The same one of the same browser is refused without, for a while.
        async with self._throttle.attempt(credentials._replace(token=f"{answer.state} {answer.code} {cookie}")):
            identity, return_to = await flow.finish(answer, cookie)
        # Not as long as the ID token, which lives for minutes at some providers.
        identity = identity._replace(valid_until=None)
        return await self._desk.sessions.begin(identity, "OpenID", credentials), return_to

    @cached_property
    def _throttle(self) -> AuthThrottle:
        """Of credentials that begin a session; those of sessions have one of their own."""
        return AuthThrottle(self._desk.clock)

    @property
    def _required_flow(self) -> CodeFlow:
        if self._code_flow is None:
            what = "browsers cannot sign in at an OpenID provider here: the desk knows none, or not its own address"
            raise Refused(Problem(SIGN_IN_NOT_CONFIGURED, what, next="pin open"))
        return self._code_flow

    def _info_response(self, caller: Identity, session: str, expires: str) -> web.Response:
        info = SessionInfo(
            user=str(caller),
            administrator=caller.is_admin,
            csrf=csrf_token(session) if session else "",
            expires=expires,
            openid=self._code_flow is not None,
        )
        return _private(json_response(info))

    def _with_session(self, response: web.Response, session: NewSession) -> web.Response:
        lifetime_s = int((session.expires_at - self._desk.clock.now()).total_seconds())
        _set_cookie(response, SESSION_COOKIE, session.token, lifetime_s)
        return response

    async def _report_refusal(self, refused: Refused, credentials: Credentials) -> None:
        if refused.problems[0].reason is not UNAUTHENTICATED:
            return
        log.warning("sign-in refused", why=refused.problems[0].what, address=credentials.address)
        now = self._desk.clock.monotonic()
        if not self._refusals.wait_s("", now):
            self._refusals.charge("", now)
            await self._desk.sessions.audit_refusal(refused, credentials)


def _set_cookie(response: web.Response, name: str, value: str, lifetime_s: int) -> None:
    # Lax and not Strict: a link in a chat leads to a signed-in page, and the provider's answer finds its attempt.
    response.set_cookie(name, value, path="/", secure=True, httponly=True, samesite="Lax", max_age=lifetime_s)


def _private(response: web.Response) -> web.Response:
    response.headers.update(_NO_STORE)
    return response


async def _read_code_body(request: web.Request) -> bytes:
    """The body. Anyone may send one, so little of it is read."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > MAX_CODE_BODY_BYTES:
                    what = f"the body of a sign-in must have at most {MAX_CODE_BODY_BYTES:,} bytes"
                    raise Refused(Problem(DOCUMENT_INVALID, what))
    except TimeoutError as error:
        what = f"the request body did not arrive within {BODY_TIMEOUT_S:g} seconds"
        raise Refused(Problem(REQUEST_TIMEOUT, what)) from error
    return bytes(body)


def _refusal_page(request: web.Request, refused: Refused) -> web.Response:
    """The problem as a page without scripts: a person has come here, by a redirect of the provider."""
    problem = refused.problems[0]
    again = f"{OPENID_PATH}?returnTo={quote('/')}"
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Not signed in</title>'
        f"<h1>Not signed in</h1><p>{escape(problem.what)}</p><p><code>{escape(problem.reason.code)}</code></p>"
        f'<p><a href="{escape(again)}">Sign in again</a></p></html>'
    )
    headers = {**page_headers(request, STATIC_POLICY), **_NO_STORE}
    return web.Response(text=text, status=problem.reason.http_status, content_type=HTML.media_type, headers=headers)
