"""HTTP API of the secret store: commands of the desk, and versions and values for pods."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.agents.callers import Caller
from pincompute.agents.secrets.changes import wait_until_set
from pincompute.agents.secrets.store import SecretStore
from pincompute.api import secret as api
from pincompute.api.names import DESK
from pincompute.api.workload import MAX_SECRETS
from pincompute.base.clock import Clock
from pincompute.base.database import DatabaseFull
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PEER_REFUSED, SECRET_INVALID, SECRETS_UNAVAILABLE
from pincompute.objects.content import content_hash
from pincompute.objects.secret_reference import SecretReference, parse_reference

MAX_BODY_BYTES = 128 << 10
"""A value of 64 KiB as Base64, and the names around it."""
MAX_WAIT_S = 30.0
MAX_WAITING_PER_PROJECT = 2_000
"""Requests of a project that may wait for a change; others are answered at once, and ask again later."""

Authenticate = Callable[[web.Request], Caller]
_command = msgspec.json.Decoder(api.SecretCommand)
_COMMANDS: dict[type, Callable[[SecretStore, Any], Awaitable[object]]] = {
    api.ListSecrets: SecretStore.list_secrets,
    api.CreateSecret: SecretStore.create,
    api.AddVersion: SecretStore.add_version,
    api.SetVersionState: SecretStore.set_state,
    api.GrantSecret: SecretStore.grant,
    api.RevokeSecret: SecretStore.revoke,
    api.DescribeSecret: SecretStore.describe,
    api.RevealSecret: SecretStore.reveal,
    api.DeleteSecret: SecretStore.delete,
    api.ReadSecretLog: SecretStore.read_log,
    api.CheckReferences: SecretStore.check_references,
}
log = structlog.get_logger()


class Waiting:
    """Counts waiting requests by project. It is shared by the listeners."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def place(self, project: str) -> Generator[bool]:
        """Whether there is room for one more request of the project, which then has it while the block runs."""
        has_room = self._counts[project] < MAX_WAITING_PER_PROJECT
        self._counts[project] += has_room
        try:
            yield has_room
        finally:
            self._counts[project] -= has_room
            if not self._counts[project]:
                del self._counts[project]


def build_app(store: SecretStore, authenticate: Authenticate, clock: Clock, waiting: Waiting) -> web.Application:
    """Application of one listener, which authenticates callers in its own way."""
    routes = Routes(store, authenticate, clock, waiting)
    app = web.Application(middlewares=[_error_middleware], client_max_size=MAX_BODY_BYTES)
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.post("/v1/commands", routes.command),
            web.get("/v1/versions", routes.versions),
            web.get("/v1/value", routes.value),
        ]
    )
    return app


class Routes:
    """Request handlers."""

    def __init__(self, store: SecretStore, authenticate: Authenticate, clock: Clock, waiting: Waiting) -> None:
        self._store = store
        self._authenticate = authenticate
        self._clock = clock
        self._waiting = waiting

    async def command(self, request: web.Request) -> web.Response:
        """Executes a command of the desk, which has authorized the person behind it."""
        if self._authenticate(request).user != DESK:
            raise _refused_peer("only the desk changes and lists secrets")
        try:
            command = _command.decode(await request.read())
        except msgspec.DecodeError:
            # Its text may quote the command.
            raise _malformed("the command") from None
        return _json(await _COMMANDS[type(command)](self._store, command))

    async def versions(self, request: web.Request) -> web.Response:
        """The version of each secret that the pod names, or why it gets none.

        With `since`, the digest of an earlier answer, the request waits for another answer, at most `wait` seconds.
        """
        caller, query = self._pod(request), request.query
        references = _parse_references(query.getall("name", []), caller.project)
        answer = await self._answer(caller, references)
        wait_s = _seconds(query.get("wait", "0"))
        if answer["digest"] != query.get("since") or not wait_s:
            return _json(answer)
        with self._waiting.place(caller.project) as has_room:
            if has_room:
                answer = await self._wait_for_change(request, references, wait_s, answer)
        return _json(answer)

    async def _wait_for_change(
        self, request: web.Request, references: list[SecretReference], wait_s: float, answer: dict[str, Any]
    ) -> dict[str, Any]:
        before, end = answer["digest"], self._clock.monotonic() + wait_s
        with self._store.changes.subscribe(self._store.keys_of(references)) as changed:
            while answer["digest"] == before and (left_s := end - self._clock.monotonic()) > 0:
                changed.clear()
                # A change before the subscription, or since the last look, is seen here.
                answer = await self._answer(self._pod(request), references)
                if answer["digest"] == before:
                    await wait_until_set(changed, left_s)
        return answer

    async def _answer(self, caller: Caller, references: list[SecretReference]) -> dict[str, Any]:
        found = await self._store.resolve(caller.project, caller.workload, references)
        secrets = {
            each.relative_to(caller.project): result.json() if isinstance(result, Problem) else result
            for each, result in zip(references, found, strict=True)
        }
        return {"digest": content_hash(secrets), "secrets": secrets}

    async def value(self, request: web.Request) -> web.Response:
        """The value of one secret, and its version in a header."""
        caller = self._pod(request)
        references = _parse_references(request.query.getall("name", []), caller.project)
        if len(references) != 1:
            raise _malformed("the name of the secret")
        (reference,) = references
        found = await self._store.read_value(caller, reference)
        headers = {"Secret-Version": str(found.version), "Cache-Control": "no-store"}
        return web.Response(body=found.value, content_type="application/octet-stream", headers=headers)

    def _pod(self, request: web.Request) -> Caller:
        """The calling workload, verified for each request: a connection may outlive its certificate."""
        caller = self._authenticate(request)
        if not caller.workload:
            raise _refused_peer("only pods of workloads read secrets here")
        if caller.expires_at is not None and caller.expires_at < self._clock.now():
            raise _refused_peer("the certificate has expired")
        if not self._store.project(caller.project).issued(caller):
            raise _refused_peer(f"the certificate is of a former project {caller.project}")
        return caller


def _parse_references(texts: list[str], project: str) -> list[SecretReference]:
    if not 0 < len(texts) <= MAX_SECRETS:
        what = f"a request names 1 to {MAX_SECRETS} secrets, this one {len(texts):,}"
        raise Refused(Problem(SECRET_INVALID, what))
    try:
        return [parse_reference(each, project) for each in texts]
    except ValueError as error:
        raise Refused(Problem(SECRET_INVALID, str(error))) from None


def _seconds(text: str) -> float:
    """How long a request waits; a number of one or two digits, as agents send it."""
    if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,3})?", text, re.ASCII):
        raise _malformed("the time to wait")
    return min(MAX_WAIT_S, float(text))


def _malformed(what: str) -> Refused:
    return Refused(Problem(SECRET_INVALID, f"{what} is malformed"))


def _refused_peer(what: str) -> Refused:
    return Refused(Problem(PEER_REFUSED, what, next="pin deploy, which gives a pod its identity"))


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _json(value: object, status: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json", headers=headers
    )


def _refusal(refused: Refused) -> web.Response:
    document = refused.json()
    if document["status"] >= 500:
        log.error("secret request failed", why=refused.problems[0].what)
    return _json(document, document["status"])


@web.middleware
async def _error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns errors into problem documents. Those of bugs go to the log only."""
    try:
        return await handler(request)
    except Refused as refused:
        return _refusal(refused)
    except DatabaseFull:
        what = "the disk of the secret store is full: no read can be recorded, and no change stored"
        return _refusal(Refused(Problem(SECRETS_UNAVAILABLE, what, next="infrastructure team: free disk space")))
    except web.HTTPRequestEntityTooLarge:
        what = f"a value has at most {api.MAX_VALUE_BYTES:,} bytes"
        return _refusal(Refused(Problem(SECRET_INVALID, what)))
    except (web.HTTPException, asyncio.CancelledError):
        raise
    except Exception:
        log.exception("secret request failed", path=request.path)
        return _refusal(Refused(Problem(SECRETS_UNAVAILABLE, "the secret store failed: see its log")))
