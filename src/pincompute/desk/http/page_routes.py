"""Routes of the web pages. They are public and hold no data: scripts read it from the API, as the caller."""

from __future__ import annotations

from aiohttp import web

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PATH_UNKNOWN
from pincompute.desk.http.auth import PUBLIC, requires
from pincompute.desk.http.endpoint import HTML, endpoint
from pincompute.desk.http.page_security import page_headers
from pincompute.desk.pages.assets import ASSETS_PATH, Asset, load_bundle

_IMMUTABLE = "public, max-age=31536000, immutable"


def page_routes() -> list[web.RouteDef]:
    """They are no part of the API, hence of no OpenAPI document."""
    return [
        web.get("/", serve_shell),
        web.get(f"{ASSETS_PATH}/{{digest}}/{{file}}", serve_asset),
        web.get("/ui", serve_shell),
        web.get("/ui/{page:.*}", serve_shell),
    ]


@requires(PUBLIC)
@endpoint(response=HTML)
async def serve_shell(request: web.Request) -> web.Response:
    """The document of every page: its script shows the page that the address names."""
    bundle = load_bundle()
    # The document names the assets of this version, so that a browser must ask whether it is the newest.
    headers = {"ETag": bundle.shell_tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == bundle.shell_tag:
        return web.Response(status=304, headers={**page_headers(request), **headers})
    return _asset_response(request, bundle.shell, headers)


@requires(PUBLIC)
@endpoint(response=HTML)
async def serve_asset(request: web.Request) -> web.Response:
    """A script, a style or a picture, under the digest of all of them."""
    bundle = load_bundle()
    asset = bundle.assets.get(request.match_info["file"])
    if asset is None or request.match_info["digest"] != bundle.digest:
        raise Refused(Problem(PATH_UNKNOWN, "no such asset in this version: reload the page"))
    return _asset_response(request, asset, {"Cache-Control": _IMMUTABLE})


def _asset_response(request: web.Request, asset: Asset, headers: dict[str, str]) -> web.Response:
    headers = {**page_headers(request), **headers, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = asset.gzipped, "gzip"
    else:
        body = asset.body
    return web.Response(body=body, content_type=asset.media_type, charset="utf-8", headers=headers)
