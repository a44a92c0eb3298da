"""The adapter for a desk: one request an operation, streams as one JSON document a line."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from pincompute.api.account import Account, Answer, Changed
from pincompute.api.change import Change
from pincompute.api.entering import Inside
from pincompute.api.fleet import Copy, Fleet, Rolling
from pincompute.api.glass import Wish
from pincompute.api.logs import Said, Wanted
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.provenance import ProvenanceAccount
from pincompute.api.receipt import Outcome, Receipt
from pincompute.api.summary import Sight, Summary
from pincompute.api.tenancy import Tenancy, Tenant
from pincompute.api.whoami import Whoami
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DESK_UNREACHABLE, INTERNAL, NOT_ALLOWED, ON_ITS_WAY, VERSIONS_DIFFER
from pincompute.cli.come_back import come_back
from pincompute.cli.port import Port
from pincompute.cli.trust import connector
from pincompute.kube.splitter import Splitter

if TYPE_CHECKING:
    from pincompute.api.documents import Document
    from pincompute.kube.execution import Execution
    from pincompute.kube.forwarding import Forwarding

T = TypeVar("T")
PATIENCE = 15
"""How often a desk is asked that waits for its cluster, two seconds each time."""
ON_THE_WAY = 202
HEARTBEAT = 30.0
"""Seconds of silence after which it is asked whether the desk is still there."""
_said: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)
_rolling = msgspec.json.Decoder(Rolling)
_sight = msgspec.json.Decoder(Sight)
_summary = msgspec.json.Decoder(Summary)


@asynccontextmanager
async def desk_port(context: Context) -> AsyncIterator[Port]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    headers = {"Authorization": f"Bearer {context.token}"} if context.token else {}
    try:
        async with aiohttp.ClientSession(
            context.desk,
            headers=headers,
            timeout=timeout,
            middlewares=(_hear_why_not, come_back(SystemClock())),
            connector=connector(context),
        ) as session:
            yield DeskPort(session, context)
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
        what = f"the desk of platform '{context.name}' at {context.desk} does not answer"
        # A handshake that a desk breaks off says no more than this.
        note = f"or it does not believe the certificate in {context.identity}" if context.identity else ""
        raise Refused(Problem(DESK_UNREACHABLE, what, note=note, next="pin status")) from error


class DeskPort:
    def __init__(self, session: aiohttp.ClientSession, context: Context) -> None:
        self._session = session
        self._context = context

    async def submit(self, text: str, file: str, project: str, wish: Wish | None = None) -> Summary:
        try:
            told = await self._tell("POST", f"/v1/projects/{project}/submissions{_asked(wish)}", text.encode())
            return self._decoded(told, Summary)
        except Refused as refused:
            # The desk knows lines, but not which of our files it was.
            raise Refused(*(_in_file(problem, file) for problem in refused.problems)) from refused

    async def submit_set(self, given: Sequence[Document], project: str, wish: Wish | None = None) -> list[Outcome]:
        # Only who brings in a set needs to know how files are read.
        from pincompute.cli.files import Joined

        joined = Joined.of(given)
        try:
            _, told = await self._told("POST", f"/v1/projects/{project}/sets{_asked(wish)}", joined.text.encode())
        except Refused as refused:
            raise Refused(*map(joined.placed, refused.problems)) from refused
        return self._decoded(told, list[Outcome])

    async def deploy(self, project: str, name: str, version: str, wish: Wish | None = None) -> Summary:
        path = f"/v1/projects/{project}/builds/{name}/{quote(version, safe='')}/submissions"
        return self._decoded(await self._tell("POST", f"{path}{_asked(wish)}"), Summary)

    async def plan_build(self, project: str, name: str, version: str) -> BuildPreview:
        path = f"/v1/projects/{project}/builds/{name}/{quote(version, safe='')}/plans"
        return await self._ask("GET", path, BuildPreview)

    async def whoami(self) -> Whoami:
        return await self._ask("GET", "/v1/whoami", Whoami)

    async def project(self, name: str) -> Tenancy:
        return await self._ask("GET", f"/v1/projects/{quote(name, safe='')}", Tenancy)

    async def projects(self) -> list[Tenant]:
        return await self._ask("GET", "/v1/projects", list[Tenant])

    async def provenance(self, project: str, name: str) -> ProvenanceAccount:
        return await self._ask("GET", f"/v1/projects/{project}/workloads/{name}/provenance", ProvenanceAccount)

    async def plan(self, text: str, project: str) -> list[Preview]:
        return await self._ask("POST", f"/v1/projects/{project}/plans", list[Preview], text.encode())

    async def all(self, project: str) -> list[Summary]:
        return await self._ask("GET", f"/v1/projects/{project}/workloads", list[Summary])

    async def watch(self, project: str) -> AsyncGenerator[Sight]:
        async for line in self._lines(f"/v1/projects/{project}/changes"):
            yield _read(line, _sight)

    async def find(self, project: str, name: str) -> Workload:
        # Only who looks at one workload needs to know every kind.
        from pincompute.api.kinds import WORKLOADS

        found = await self._ask("GET", f"/v1/projects/{project}/workloads/{name}", dict[str, Any])
        return msgspec.convert(found, WORKLOADS[found["kind"]])

    async def account(self, project: str, name: str) -> Account:
        return await self._ask("GET", f"/v1/projects/{project}/workloads/{name}/account", Account)

    async def why(self, project: str, name: str) -> Answer:
        return await self._ask("GET", f"/v1/projects/{project}/workloads/{name}/why", Answer)

    async def change(self, project: str, name: str, change: Change) -> Changed:
        path, body = f"/v1/projects/{project}/workloads/{name}/changes", msgspec.json.encode(change)
        return self._decoded(await self._tell("POST", path, body), Changed)

    async def delete(self, project: str, name: str, uid: str = "") -> None:
        which = f"?{urlencode({'uid': uid})}" if uid else ""
        await self._tell("DELETE", f"/v1/projects/{project}/workloads/{name}{which}")

    async def fleet(self) -> Fleet:
        return await self._ask("GET", "/v1/fleet", Fleet)

    async def copies(self) -> list[Copy]:
        return await self._ask("GET", "/v1/fleet/copies", list[Copy])

    async def change_roll(self, number: int, change: dict[str, Any]) -> Rolling:
        return await self._ask("PATCH", f"/v1/runtimes/{number}/roll", Rolling, msgspec.json.encode(change))

    async def follow_roll(self, number: int) -> AsyncGenerator[Rolling]:
        async for line in self._lines(f"/v1/runtimes/{number}/roll"):
            yield _read(line, _rolling)

    async def images(self) -> list[str]:
        # Only who looks for an image needs to know how a registry is asked.
        from pincompute.kube.registry import known

        return await known(self._context) if self._context.images else []

    async def follow(self, project: str, name: str) -> AsyncGenerator[Summary]:
        async for line in self._lines(f"/v1/projects/{project}/workloads/{name}/progress"):
            yield _read(line, _summary)

    async def logs(self, project: str, name: str, wanted: Wanted) -> AsyncGenerator[Said]:
        async for line in self._lines(f"/v1/projects/{project}/workloads/{name}/logs?{_query(wanted)}"):
            yield _read(line, _said)

    @asynccontextmanager
    async def enter(self, project: str, name: str, inside: Inside) -> AsyncIterator[Execution]:
        # Only who goes in needs to know how that is spoken of.
        from pincompute.kube.execution import Execution

        path = f"/v1/projects/{project}/workloads/{name}/programs?{_query(inside)}"
        async with self._line(path) as socket:
            yield Execution(socket, f"{project}/{name}", self._context.desk)

    @asynccontextmanager
    async def reach(self, project: str, name: str, copy: str, port: int) -> AsyncIterator[Forwarding]:
        from pincompute.kube.forwarding import Forwarding

        path = f"/v1/projects/{project}/workloads/{name}/ports/{port}?{urlencode({'copy': copy})}"
        async with self._line(path) as socket:
            yield Forwarding(socket, f"{project}/{name}", self._context.desk)

    @asynccontextmanager
    async def _line(self, path: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with self._session.ws_connect(path, heartbeat=HEARTBEAT, max_msg_size=0) as socket:
            try:
                yield socket
            except Refused:
                if socket.close_code != aiohttp.WSCloseCode.POLICY_VIOLATION:
                    raise
            if socket.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION:
                what = "the desk has ended this: your login has run out, or you may no longer go in there"
                raise Refused(Problem(NOT_ALLOWED, what, next="pin whoami"))

    async def _ask(self, method: str, path: str, type_: type[T], body: bytes | None = None) -> T:
        async with self._session.request(method, path, data=body) as answer:
            await _check(answer)
            return self._decoded(await answer.read(), type_)

    async def _tell(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """What is to be done once."""
        status, said = await self._told(method, path, body)
        if status == ON_THE_WAY:
            raise Refused(on_its_way(msgspec.json.decode(said, type=Receipt)))
        return said

    async def _told(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """While it is on its way, the same is asked again under its key."""
        key, said = {"Idempotency-Key": secrets.token_hex(16)}, b""
        for _ in range(PATIENCE):
            async with self._session.request(method, path, data=body, headers=key) as answer:
                await _check(answer)
                said = await answer.read()
                if answer.status != ON_THE_WAY:
                    break
        return answer.status, said

    def _decoded(self, body: bytes, type_: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=type_)
        except msgspec.ValidationError as error:
            what = f"the desk at {self._context.desk} is of another version than this command: {error}"
            raise Refused(Problem(VERSIONS_DIFFER, what, next="pin up")) from error

    async def _lines(self, path: str) -> AsyncGenerator[bytes]:
        async with self._session.get(path) as answer:
            await _check(answer)
            splitter = Splitter()
            async for chunk in answer.content.iter_any():
                for line in splitter.feed(chunk):
                    yield line


def _asked(wish: Wish | None) -> str:
    return f"?{urlencode({'breakGlass': wish.because, 'seconds': wish.seconds})}" if wish else ""


def _query(asked: msgspec.Struct) -> str:
    said = msgspec.to_builtins(asked)
    return urlencode([(field, word) for field, value in said.items() for word in _words(value)])


def _words(said: Any) -> list[str]:
    """As a query has them."""
    if isinstance(said, bool):
        return [str(said).lower()]
    return [str(said)] if isinstance(said, str | int) else list(said)


async def _hear_why_not(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A refused websocket has words too, which its handshake would throw away."""
    answer = await send(request)
    if "Upgrade" in request.headers and answer.status != 101:
        async with answer:
            raise _refusal(await answer.read(), f"the desk answered {answer.status}")
    return answer


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status >= 400:
        raise _refusal(await answer.read(), f"the desk answered {answer.status}")


def _read(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError:
        # The last line of a stream that broke says why.
        raise _refusal(line, "the desk broke off") from None


def _refusal(body: bytes, otherwise: str) -> Refused:
    try:
        errors: list[dict[str, Any]] = msgspec.json.decode(body)["errors"]
        return Refused(*map(Problem.of, errors))
    except (msgspec.DecodeError, KeyError, TypeError):
        return Refused(Problem(INTERNAL, otherwise, next="pin status"))


def on_its_way(kept: Receipt) -> Problem:
    """It is no refusal; but what was asked for is not there, and whoever waits for it must know."""
    what = f"{kept.name} is accepted as {kept.id}, and its cluster has not taken it yet"
    waits = kept.waits or "nothing is known of why"
    return Problem(ON_ITS_WAY, what, note=f"{waits}\nit is carried there as soon as that can be", next="pin status")


def _in_file(problem: Problem, file: str) -> Problem:
    return problem._replace(where=problem.where._replace(file=file)) if problem.where.line else problem
