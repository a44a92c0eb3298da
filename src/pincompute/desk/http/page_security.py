"""Security headers of pages and their assets: they run scripts of this origin only, and no other page may frame them.

The policy has no exception for inline scripts and styles, so that markup in a name, message or log line that a page
fails to escape still runs nothing.
"""

from __future__ import annotations

from aiohttp import web

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
STATIC_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Of a page without scripts, which has its style in itself."""
HSTS_MAX_AGE_S = 31_536_000
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def page_headers(request: web.Request, policy: str = PAGE_POLICY) -> dict[str, str]:
    """The headers of an answer that a browser renders or loads. A new dictionary, to which a caller may add."""
    headers = {"Content-Security-Policy": policy, **_HEADERS}
    if request.secure:
        # Over plain HTTP browsers ignore it, and a proxy that ends TLS sends its own.
        headers["Strict-Transport-Security"] = f"max-age={HSTS_MAX_AGE_S}"
    return headers
