"""What the desk says of itself: every way to ask it, for programs and for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from aiohttp import web

from pincompute.api.whoami import SignIn
from pincompute.objects.content import Object
from pincompute.submission.answers import json_of
from pincompute.submission.guards import NOTHING, needs
from pincompute.submission.openapi import described
from pincompute.submission.page import page
from pincompute.submission.speech import HTML, speaks


class AboutRoutes:
    def __init__(self, ways: Sequence[web.RouteDef], sign_in: SignIn) -> None:
        self._ways = ways
        self._sign_in = sign_in

    def all(self) -> list[web.RouteDef]:
        return [web.get("/v1/openapi.json", self.openapi), web.get("/v1/", self.page)]

    @needs(NOTHING)
    @speaks(gives=Object)
    async def openapi(self, _: web.Request) -> web.StreamResponse:
        """This description."""
        return json_of(self._document)

    @needs(NOTHING)
    @speaks(gives=HTML)
    async def page(self, _: web.Request) -> web.StreamResponse:
        """The same as a page, for people."""
        # It runs nothing and loads nothing, whatever might stand in it.
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return web.Response(text=self._page, content_type=HTML.media, headers=headers)

    @cached_property
    def _document(self) -> Object:
        """Made when somebody first asks: a desk begins sooner without."""
        return described(self._ways, self._sign_in)

    @cached_property
    def _page(self) -> str:
        return page(self._document)
