"""HTTP API of the config store: the desk publishes, reads and rolls bundles; pods read those of their project."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.agents.callers import Caller
from pincompute.agents.config.metrics import config_store_metrics
from pincompute.agents.config.store import ConfigStore, bundle_unknown
from pincompute.api.config_bundle import MAX_BUNDLES, ConfigPointer, ConfigShares, StoredPublish
from pincompute.api.names import DESK, METRICS_READER
from pincompute.base.metrics_page import CONTENT_TYPE, exposition
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CONFIG_INVALID, CONFIG_STORE_FULL
from pincompute.objects.config_bundle import MAX_FILE_BYTES

LIVE_WAIT_S = 25.0
"""A live request without a change is answered after this time, so that a lost connection is noticed."""
MAX_BODY_BYTES = MAX_FILE_BYTES + 1
"""A manifest of 1,000 files is smaller."""
BODY_TIMEOUT_S = 20.0

_PROJECT = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[0-9]{1,6}")
T = TypeVar("T")
Authenticate = Callable[[web.Request], Caller]

log = structlog.get_logger()


def build_app(store: ConfigStore, authenticate: Authenticate) -> web.Application:
    """Application of one listener, which authenticates callers in its own way."""
    routes = Routes(store, authenticate)
    app = web.Application(middlewares=[_error_middleware], client_max_size=MAX_BODY_BYTES)
    project, bundle = "/v1/projects/{project}", "/v1/projects/{project}/bundles/{name}"
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/metrics", routes.serve_metrics),
            web.put(f"{project}/contents/{{digest}}", routes.store_content),
            web.get(f"{project}/contents/{{digest}}", routes.send_content),
            web.get(f"{project}/bundles", routes.send_bundles),
            web.get(bundle, routes.show_bundle),
            web.delete(bundle, routes.delete_bundle),
            web.post(f"{bundle}/versions", routes.post_version),
            web.get(f"{bundle}/versions/{{version}}", routes.send_version),
            web.put(f"{bundle}/pointer", routes.set_pointer),
            web.put(f"{bundle}/shares", routes.set_shares),
            # Of pods.
            web.get("/v1/bundles/{project}/{name}/{version}", routes.pod_version),
            web.get("/v1/bundles/{project}/{name}/{version}/{digest}", routes.pod_content),
            web.get("/v1/live", routes.pod_live),
        ]
    )
    return app


class Routes:
    """Request handlers."""

    def __init__(self, store: ConfigStore, authenticate: Authenticate) -> None:
        self._store = store
        self._authenticate = authenticate

    async def serve_metrics(self, request: web.Request) -> web.Response:
        if self._authenticate(request).user != METRICS_READER:
            raise web.HTTPForbidden(text=f"only {METRICS_READER} may read metrics")
        page = exposition(partial(config_store_metrics, self._store))
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE})

    # Of the desk, which has authorized the user.

    async def store_content(self, request: web.Request) -> web.Response:
        project = self._of_desk(request)
        self._store.put_content(project, _word(request, "digest", _DIGEST), await _read_body(request))
        return web.Response(status=204)

    async def send_content(self, request: web.Request) -> web.Response:
        project = self._of_desk(request)
        return web.Response(body=self._store.read_content(project, _word(request, "digest", _DIGEST)))

    async def send_bundles(self, request: web.Request) -> web.Response:
        return _json(self._store.bundles(self._of_desk(request)))

    async def show_bundle(self, request: web.Request) -> web.Response:
        return _json(self._store.bundle(self._of_desk(request), _name(request)))

    async def delete_bundle(self, request: web.Request) -> web.Response:
        self._store.delete(self._of_desk(request), _name(request))
        return web.Response(status=204)

    async def post_version(self, request: web.Request) -> web.Response:
        project, name = self._of_desk(request), _name(request)
        asked = _decode_body(await _read_body(request), StoredPublish)
        files = [each.bundle_file() for each in asked.files]
        return _json(self._store.publish(project, name, files, asked.by, asked.in_use))

    async def send_version(self, request: web.Request) -> web.Response:
        return _json(self._store.read_version(self._of_desk(request), _name(request), _version(request)))

    async def set_pointer(self, request: web.Request) -> web.Response:
        project, name = self._of_desk(request), _name(request)
        asked = _decode_body(await _read_body(request), ConfigPointer)
        return _json(self._store.point(project, name, asked.version))

    async def set_shares(self, request: web.Request) -> web.Response:
        project, name = self._of_desk(request), _name(request)
        return _json(self._store.share(project, name, _decode_body(await _read_body(request), ConfigShares).projects))

    def _of_desk(self, request: web.Request) -> str:
        if self._authenticate(request).user != DESK:
            raise web.HTTPForbidden(text=f"only {DESK} may do this")
        return _word(request, "project", _PROJECT)

    # Of pods, which their certificate identifies.

    async def pod_version(self, request: web.Request) -> web.Response:
        return _json(self._store.read_version(*self._readable(request), _version(request)))

    async def pod_content(self, request: web.Request) -> web.Response:
        """The content of a file of a version that the pod may read."""
        project, name = self._readable(request)
        digest = _word(request, "digest", _DIGEST)
        files = self._store.read_version(project, name, _version(request)).files
        if all(each.digest != digest for each in files):
            raise Refused(bundle_unknown(project, name))
        return web.Response(body=self._store.read_content(project, digest))

    async def pod_live(self, request: web.Request) -> web.Response:
        """The current digest of each bundle, as soon as one differs from what the pod knows."""
        caller = self._pod(request)
        keys = [_key(each) for each in request.query.getall("bundle", [])]
        known: list[str] = request.query.getall("known", [])
        if not 0 < len(keys) <= MAX_BUNDLES or len(known) != len(keys):
            raise ValueError(f"give 1 to {MAX_BUNDLES} bundles, and what is known of each")
        with self._store.watch(caller.project, keys) as changed:
            if self._digests(caller, keys) == known:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), LIVE_WAIT_S)
        return _json(self._digests(caller, keys))

    def _digests(self, caller: Caller, keys: Sequence[tuple[str, str]]) -> list[str]:
        """Version and digest of each bundle; empty for one that does not exist, or that the pod may not read."""
        return [self._digest(caller, *key) for key in keys]

    def _digest(self, caller: Caller, project: str, name: str) -> str:
        try:
            bundle = self._store.bundle(project, name)
        except Refused:
            return ""
        current = bundle.find_version(bundle.current)
        return f"{current.version}={current.digest}" if current and bundle.readable_by(caller.project) else ""

    def _readable(self, request: web.Request) -> tuple[str, str]:
        caller = self._pod(request)
        project, name = _word(request, "project", _PROJECT), _name(request)
        bundle = self._store.bundle(project, name)
        if not bundle.readable_by(caller.project):
            raise Refused(bundle_unknown(project, name))
        return project, name

    def _pod(self, request: web.Request) -> Caller:
        caller = self._authenticate(request)
        if not caller.workload:
            raise web.HTTPForbidden(text="only pods of workloads may read bundles")
        return caller


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _word(request: web.Request, name: str, pattern: re.Pattern[str]) -> str:
    return _checked(request.match_info[name], name, pattern)


def _checked(text: str, name: str, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no {name}")
    return text


def _name(request: web.Request) -> str:
    return _word(request, "name", _NAME)


def _version(request: web.Request) -> int:
    """0 is the current version."""
    return int(_word(request, "version", _VERSION))


def _key(text: str) -> tuple[str, str]:
    project, _, name = text.partition("/")
    return _checked(project, "project", _PROJECT), _checked(name, "name", _NAME)


async def _read_body(request: web.Request) -> bytes:
    async with asyncio.timeout(BODY_TIMEOUT_S):
        return await request.read()


def _decode_body(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(Problem(CONFIG_INVALID, f"invalid request: {error}")) from error


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


@web.middleware
async def _error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns errors into responses: problems as JSON, which the desk passes on to its user."""
    try:
        return await handler(request)
    except Refused as refused:
        first = refused.problems[0]
        if first.reason is CONFIG_STORE_FULL:
            log.error("config store cannot write", why=first.what)
        body = msgspec.json.encode([each.json() for each in refused.problems])
        return web.Response(body=body, status=first.reason.http_status, content_type="application/problem+json")
    except ValueError as error:
        return web.Response(text=f"invalid request: {error}", status=400)
    except TimeoutError:
        return web.Response(text="the request body did not arrive in time", status=408)
    except OSError as error:
        log.error("config store read failed", why=error.strerror or str(error))
        return web.Response(text=f"cannot read the stored bundles: {error.strerror}", status=503)
