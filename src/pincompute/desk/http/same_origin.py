"""Protects sessions from other sites: a browser sends the cookie with requests that their pages cause, too.

The cookie is `SameSite=Lax`, which still lets it come with links, and with everything from another port or subdomain
of the same site. So each request must come from a page of this desk, and one that changes something must prove by the
header Pin-Csrf that its script could read an answer of this desk.
"""

from __future__ import annotations

import hmac

from aiohttp import hdrs, web

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CROSS_SITE
from pincompute.desk.authn.sessions import csrf_token

SESSION = web.RequestKey("session", str)
"""The cookie by which the caller of a request is authenticated; absent for other credentials."""
CSRF_HEADER = "Pin-Csrf"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = ("same-origin", "none")
"""Values of Sec-Fetch-Site. A user who types an address sends `none`."""


def require_session_origin(request: web.Request, session: str) -> None:
    """Raises Refused for a request with a cookie that no page of this desk has sent."""
    if is_upgrade := hdrs.UPGRADE in request.headers:
        # Scripts of every site may open websockets. Browsers say in this header which one it is.
        require_own_page(request, origin_required=True)
    is_safe = request.method in SAFE_METHODS and not is_upgrade
    # A link on another site leads to this desk. Its page does not get the answer.
    is_link = is_safe and request.headers.get("Sec-Fetch-Mode") == "navigate"
    if not is_link:
        require_own_page(request)
    if not is_safe and not is_upgrade:
        given = request.headers.get(CSRF_HEADER, "").encode(errors="replace")
        if not hmac.compare_digest(given, csrf_token(session).encode()):
            what = f"the header {CSRF_HEADER} is not that of this session"
            raise Refused(Problem(CROSS_SITE, what, next="GET /session, which has it in `csrf`"))


def require_own_page(request: web.Request, *, origin_required: bool = False) -> None:
    """Raises Refused for a request that a page of another origin has caused. Programs send none of these headers."""
    for site in request.headers.getall("Sec-Fetch-Site", ()):
        if site not in _OWN_SITES:
            raise _cross_site("a page of another origin")
    origins = request.headers.getall(hdrs.ORIGIN, ())
    if origin_required and not origins:
        raise _cross_site("a page that does not say its origin")
    for origin in origins:
        if not _is_own(request, origin):
            raise _cross_site(f"a page of {origin}" if origin.isprintable() else "a page of another origin")


def _is_own(request: web.Request, origin: str) -> bool:
    scheme, _, host = origin.partition("://")
    # Behind a proxy that ends TLS the desk itself is asked by HTTP.
    schemes = ("https",) if request.secure else ("http", "https")
    return scheme in schemes and host.lower() == request.host.lower()


def _cross_site(source: str) -> Refused:
    what = f"the request was caused by {source}, and a session counts for pages of this desk only"
    return Refused(Problem(CROSS_SITE, what, next="use a bearer token"))
