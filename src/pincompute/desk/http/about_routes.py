"""Endpoints with the description of the API: as OpenAPI, and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from aiohttp import web

from pincompute.api.whoami import SignIn
from pincompute.desk.http.api_page import render_page
from pincompute.desk.http.auth import PUBLIC, requires
from pincompute.desk.http.endpoint import HTML, endpoint
from pincompute.desk.http.openapi import openapi_document
from pincompute.desk.http.page_security import STATIC_POLICY, page_headers
from pincompute.desk.http.responses import json_response
from pincompute.objects.content import Object


class AboutRoutes:
    def __init__(self, routes: Sequence[web.RouteDef], sign_in: SignIn) -> None:
        self._routes = routes
        self._sign_in = sign_in

    def route_table(self) -> list[web.RouteDef]:
        return [web.get("/v1/openapi.json", self.openapi), web.get("/v1/", self.page)]

    @requires(PUBLIC)
    @endpoint(response=Object)
    async def openapi(self, _: web.Request) -> web.StreamResponse:
        """This description, as OpenAPI."""
        return json_response(self._document)

    @requires(PUBLIC)
    @endpoint(response=HTML)
    async def page(self, request: web.Request) -> web.StreamResponse:
        """This description, as a page."""
        # The page runs no script and loads nothing, even if a description contained markup.
        headers = page_headers(request, STATIC_POLICY)
        return web.Response(text=self._page, content_type=HTML.media_type, headers=headers)

    @cached_property
    def _document(self) -> Object:
        """Built on the first request, so that the desk starts faster."""
        return openapi_document(self._routes, self._sign_in)

    @cached_property
    def _page(self) -> str:
        return render_page(self._document)
