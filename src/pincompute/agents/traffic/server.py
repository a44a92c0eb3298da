"""HTTPS API of the registrar for the pods of its node: the serversets that they may read, and each change of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.agents.identity.bundle import own_id, peer_id, server_context
from pincompute.agents.traffic.serversets import Serversets, combined_version
from pincompute.api.names import READERS_ANNOTATION
from pincompute.api.serverset import MAX_NAMES, ServersetKey, may_read
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.base.http_process import client_certificate
from pincompute.base.problem import Refused

POLL_S = 30.0
"""Time after which a request without a change is answered."""
MAX_REQUESTS = 256
"""Concurrent requests of one workload. A node has fewer pods."""
MAX_ANSWER_CHARS = 4 << 20

log = structlog.get_logger()


class ServiceReaders(LenientStruct, frozen=True):
    """The fields of a Service that open its serverset."""

    metadata: Metadata

    @property
    def has_serverset(self) -> bool:
        return READERS_ANNOTATION in self.metadata.annotations

    @property
    def readers(self) -> Sequence[str]:
        return self.metadata.annotations.get(READERS_ANNOTATION, "").split()


class SetAnswer(LenientStruct, frozen=True, omit_defaults=False):
    """One serverset: the text of its file, or why there is none."""

    text: str | None = None
    """Null while it has not been read from ZooKeeper; the file of the client stays as it is."""
    problem: str = ""
    """Why the caller may not read it; its file is removed."""


class Answer(LenientStruct, frozen=True, omit_defaults=False):
    version: str
    sets: dict[str, SetAnswer]


Services = Mapping[tuple[str, str], ServiceReaders]


class EndpointsApi:
    """Answers pods, which are authenticated by their identity."""

    def __init__(
        self, serversets: Serversets, services: Services, authenticate: Callable[[web.Request], ServersetKey]
    ) -> None:
        self._serversets = serversets
        self._services = services
        self._authenticate = authenticate
        self.requests: Counter[ServersetKey] = Counter()
        """Requests of each workload that wait or are answered."""

    def application(self) -> web.Application:
        app = web.Application(middlewares=[_refusals])
        app.add_routes([web.get("/v1/endpoints", self.endpoints)])
        return app

    async def endpoints(self, request: web.Request) -> web.Response:
        """The serversets of the query, as soon as they differ from the version that the caller has."""
        caller = self._authenticate(request)
        names = list(dict.fromkeys(request.query.getall("set", list[str]())))
        keys = [ServersetKey.parse(each) for each in names]
        targets = [each for each in keys if each]
        if not names or len(names) > MAX_NAMES or len(targets) != len(names):
            raise web.HTTPBadRequest(text=f"give 1 to {MAX_NAMES} serversets, each as set=PROJECT/WORKLOAD")
        if self.requests[caller] >= MAX_REQUESTS:
            raise web.HTTPTooManyRequests(text=f"{caller} has {MAX_REQUESTS} requests already")
        self.requests[caller] += 1
        try:
            answer = self._answer(caller, targets)
            if answer.version == request.query.get("since"):
                wait = request.query.get("wait", "")
                await self._serversets.wait(min(int(wait), POLL_S) if wait.isdecimal() and len(wait) < 4 else POLL_S)
                answer = self._answer(caller, targets)
        finally:
            self.requests[caller] -= 1
            if not self.requests[caller]:
                del self.requests[caller]
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    def _answer(self, caller: ServersetKey, targets: Sequence[ServersetKey]) -> Answer:
        answers = {str(each): self._set_answer(caller, each) for each in targets}
        if sum(len(each.text or "") for each in answers.values()) > MAX_ANSWER_CHARS:
            # The sidecar that keeps the files has little memory.
            raise web.HTTPRequestEntityTooLarge(MAX_ANSWER_CHARS, text="these serversets have too many members")
        parts = [f"{name}={each.problem}={each.text}" for name, each in sorted(answers.items())]
        return Answer(version=combined_version(parts), sets=answers)

    def _set_answer(self, caller: ServersetKey, target: ServersetKey) -> SetAnswer:
        """Of another project a caller does not learn whether the workload exists."""
        service = self._services.get((target.project, target.workload))
        if not may_read(caller, target, service.readers if service else ()):
            return SetAnswer(problem=f"{target} is not open to {caller}")
        if service is None or not service.has_serverset:
            # Nothing is watched for a name that a caller has made up.
            return SetAnswer(text="")
        return SetAnswer(text=self._serversets.get(target).text)


class PodAuthenticator:
    """Knows a pod by its identity certificate: `spiffe://DOMAIN/PROJECT/WORKLOAD`."""

    def __init__(self, identity: Path) -> None:
        self.context = server_context(identity)
        self._identity = identity

    def __call__(self, request: web.Request) -> ServersetKey:
        path = peer_id(client_certificate(request), own_id(self._identity).trust_domain).path
        if len(path) != 2:
            raise web.HTTPForbidden(text="only workloads read endpoints")
        return ServersetKey(*path)


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refused:
        return web.Response(text=refused.text(), status=403)
