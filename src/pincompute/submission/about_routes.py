"""What the desk says of itself: every way to ask it, for programs and for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
from aiohttp import web

from pincompute.api.whoami import SignIn
from pincompute.objects.content import Object
from pincompute.submission.guards import NOTHING, needs
from pincompute.submission.openapi import described
from pincompute.submission.speech import speaks


class AboutRoutes:
    def __init__(self, ways: Sequence[web.RouteDef], sign_in: SignIn) -> None:
        self._ways = ways
        self._sign_in = sign_in

    def all(self) -> list[web.RouteDef]:
        return [web.get("/v1/openapi.json", self.openapi)]

    @needs(NOTHING)
    @speaks(gives=Object)
    async def openapi(self, _: web.Request) -> web.StreamResponse:
        """This description."""
        return web.Response(body=self._document, content_type="application/json")

    @cached_property
    def _document(self) -> bytes:
        """Made when somebody first asks: a desk begins sooner without."""
        return msgspec.json.encode(described(self._ways, self._sign_in))
