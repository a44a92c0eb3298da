"""The operator's HTTP server, on loopback by default: health, metrics, and the pass history of each object."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from aiohttp import web

from pincompute.base.page_token import token_middlewares
from pincompute.controller.pass_history import PassRecord
from pincompute.controller.passes import Key
from pincompute.objects.times import format_time
from pincompute.operator.health import health_report, is_ready, liveness_failures
from pincompute.operator.manager import ControllerManager

_WAITING = "waiting for the cluster facts\n"


class HttpServer:
    """Starts before the manager exists, so that a process that waits for its cluster is reported as alive.

    With a token file, metrics and history require its token.
    """

    def __init__(self, token_file: Path | None = None) -> None:
        self.manager: ControllerManager | None = None
        """Set once the cluster has answered."""
        application = web.Application(middlewares=token_middlewares(token_file))
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/history/{name}", self._history)
        application.router.add_get("/history/{project}/{name}", self._history)
        self._runner = web.AppRunner(application, access_log=None)

    async def open(self, listen: str) -> int:
        """Starts listening; returns the port, which the system chooses for port 0."""
        await self._runner.setup()
        host, _, port = listen.rpartition(":")
        await web.TCPSite(self._runner, host, int(port)).start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        if self.manager is None:
            return web.Response(text=_WAITING)
        failed = any(liveness_failures(self.manager))
        return web.Response(text=health_report(self.manager), status=503 if failed else 200)

    async def _readyz(self, _: web.Request) -> web.Response:
        if self.manager is None:
            return web.Response(text=_WAITING, status=503)
        return web.Response(text=health_report(self.manager), status=200 if is_ready(self.manager) else 503)

    async def _metrics(self, _: web.Request) -> web.Response:
        # Imported here, because an operator that is never scraped need not load the Prometheus client.
        from pincompute.base.metrics_page import exposition
        from pincompute.operator.metrics import operator_metrics

        if self.manager is None:
            return web.Response(status=503)
        body = exposition(partial(operator_metrics, self.manager))
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _history(self, request: web.Request) -> web.Response:
        project, name = request.match_info.get("project", ""), request.match_info["name"]
        records = self.manager.loop.history.find(project, name) if self.manager else []
        body = [_record_json(key, record) for key, record in records]
        return web.json_response(body, status=200 if body else 404)


def _record_json(key: Key, record: PassRecord) -> dict[str, object]:
    return {
        "key": str(key),
        "at": format_time(record.at),
        "triggers": record.triggers,
        "cacheAgeSeconds": record.cache_age_s,
        "steps": record.steps,
        "why": record.why,
        "outcome": record.outcome,
        "durationSeconds": round(record.duration_s, 6),
        "count": record.count,
    }
