"""Endpoints for probes: whether the desk runs, and whether it can store what it accepts."""

from __future__ import annotations

from aiohttp import web

from pincompute.base.reasons import DATABASE_FULL
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import PUBLIC, requires
from pincompute.desk.http.endpoint import PLAIN_TEXT, endpoint


class HealthRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self) -> list[web.RouteDef]:
        return [web.get("/healthz", self.healthz), web.get("/readyz", self.readyz)]

    @requires(PUBLIC)
    @endpoint(response=PLAIN_TEXT)
    async def healthz(self, _: web.Request) -> web.Response:
        """Health of the desk."""
        return web.Response(text="ok\n")

    @requires(PUBLIC)
    @endpoint(response=PLAIN_TEXT, reasons=(DATABASE_FULL,))
    async def readyz(self, _: web.Request) -> web.Response:
        """Whether the desk can store what it accepts."""
        await self._desk.write_check.run()
        return web.Response(text="ok\n")
