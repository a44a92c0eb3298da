"""The operator's own door, on loopback: health, metrics, and the story of each object."""

from __future__ import annotations

from aiohttp import web

from pincompute.objects.times import stamp
from pincompute.operator.health import able, ills, told
from pincompute.operator.loops import Loops


class Door:
    """Opened before there are any loops: a process that waits for its cluster is a healthy one."""

    def __init__(self) -> None:
        self.loops: Loops | None = None
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/story/{name}", self._story)
        application.router.add_get("/story/{project}/{name}", self._story)
        self._runner = web.AppRunner(application, access_log=None)

    async def open(self, listen: str) -> int:
        """The port that it got."""
        await self._runner.setup()
        host, _, port = listen.rpartition(":")
        await web.TCPSite(self._runner, host, int(port)).start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        if self.loops is None:
            return web.Response(text="waiting for the cluster's facts\n")
        return web.Response(text=told(self.loops), status=503 if any(ills(self.loops)) else 200)

    async def _readyz(self, _: web.Request) -> web.Response:
        if self.loops is None:
            return web.Response(text="waiting for the cluster's facts\n", status=503)
        return web.Response(text=told(self.loops), status=200 if able(self.loops) else 503)

    async def _metrics(self, _: web.Request) -> web.Response:
        # Whoever is never asked for them does not carry what renders them.
        from pincompute.operator.metrics import exposition

        if self.loops is None:
            return web.Response(status=503)
        return web.Response(body=exposition(self.loops), headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _story(self, request: web.Request) -> web.Response:
        project, name = request.match_info.get("project", ""), request.match_info["name"]
        told = self.loops.planned.story.of(project, name) if self.loops else []
        body = [
            {**passed._asdict(), "at": stamp(passed.at), "seconds": round(passed.seconds, 6), "key": str(key)}
            for key, passed in told
        ]
        return web.json_response(body, status=200 if body else 404)
