"""The adapter for a desk: one request an operation, streams as one JSON document a line."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

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
from pincompute.base.clock import SystemClock
from pincompute.base.context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DESK_UNREACHABLE, ON_ITS_WAY, VERSIONS_DIFFER
from pincompute.cli.asking import Answer as Response
from pincompute.cli.asking import Asker, Unanswered
from pincompute.cli.come_back import ComeBack
from pincompute.cli.port import Port
from pincompute.cli.refusal import refusal
from pincompute.cli.trust import tls
from pincompute.kube.splitter import Splitter

if TYPE_CHECKING:
    from pincompute.api.documents import Document
    from pincompute.api.workload import Workload
    from pincompute.kube.execution import Execution
    from pincompute.kube.forwarding import Forwarding

T = TypeVar("T")
PATIENCE = 15
"""How often a desk is asked that waits for its cluster, two seconds each time."""
ON_THE_WAY = 202


@asynccontextmanager
async def desk_port(context: Context) -> AsyncIterator[Port]:
    headers = {"Authorization": f"Bearer {context.token}"} if context.token else {}
    try:
        async with Asker(context.desk, headers, tls(context)) as asker:
            yield DeskPort(asker, context, headers)
    except Unanswered as error:
        what = f"the desk of platform '{context.name}' at {context.desk} does not answer"
        # A handshake that a desk breaks off says no more than this.
        note = f"or it does not believe the certificate in {context.identity}" if context.identity else ""
        raise Refused(Problem(DESK_UNREACHABLE, what, note=note, next="pin status")) from error


class DeskPort:
    def __init__(self, asker: Asker, context: Context, headers: Mapping[str, str]) -> None:
        self._asker = asker
        self._context = context
        self._headers = headers
        self._again = ComeBack(SystemClock())

    async def submit(self, text: str, file: str, project: str, wish: Wish | None = None) -> Summary:
        try:
            told = await self._tell("POST", f"{_of(project, 'submissions')}{_wished(wish)}", text.encode())
            return self._decoded(told, Summary)
        except Refused as refused:
            # The desk knows lines, but not which of our files it was.
            raise Refused(*(_in_file(problem, file) for problem in refused.problems)) from refused

    async def submit_set(self, given: Sequence[Document], project: str, wish: Wish | None = None) -> list[Outcome]:
        # Only who brings in a set needs to know how files are read.
        from pincompute.cli.files import Joined

        joined = Joined.of(given)
        try:
            _, told = await self._told("POST", f"{_of(project, 'sets')}{_wished(wish)}", joined.text.encode())
        except Refused as refused:
            raise Refused(*map(joined.placed, refused.problems)) from refused
        return self._decoded(told, list[Outcome])

    async def deploy(self, project: str, name: str, version: str, wish: Wish | None = None) -> Summary:
        path = _of(project, "builds", name, version, "submissions")
        return self._decoded(await self._tell("POST", f"{path}{_wished(wish)}"), Summary)

    async def plan_build(self, project: str, name: str, version: str) -> BuildPreview:
        path = _of(project, "builds", name, version, "plans")
        return await self._ask("GET", path, BuildPreview)

    async def whoami(self) -> Whoami:
        return await self._ask("GET", "/v1/whoami", Whoami)

    async def project(self, name: str) -> Tenancy:
        return await self._ask("GET", _of(name), Tenancy)

    async def projects(self) -> list[Tenant]:
        return await self._ask("GET", "/v1/projects", list[Tenant])

    async def provenance(self, project: str, name: str) -> ProvenanceAccount:
        return await self._ask("GET", _of(project, "workloads", name, "provenance"), ProvenanceAccount)

    async def plan(self, text: str, project: str) -> list[Preview]:
        return await self._ask("POST", _of(project, "plans"), list[Preview], text.encode())

    async def all(self, project: str) -> list[Summary]:
        return await self._ask("GET", _of(project, "workloads"), list[Summary])

    def watch(self, project: str) -> AsyncGenerator[Sight]:
        return self._stream(_of(project, "changes"), Sight)

    async def find(self, project: str, name: str) -> Workload:
        # Only who looks at one workload needs to know every kind.
        from pincompute.api.kinds import WORKLOADS

        found = await self._ask("GET", _of(project, "workloads", name), dict[str, Any])
        return msgspec.convert(found, WORKLOADS[found["kind"]])

    async def account(self, project: str, name: str) -> Account:
        return await self._ask("GET", _of(project, "workloads", name, "account"), Account)

    async def why(self, project: str, name: str) -> Answer:
        return await self._ask("GET", _of(project, "workloads", name, "why"), Answer)

    async def change(self, project: str, name: str, change: Change) -> Changed:
        path, body = _of(project, "workloads", name, "changes"), msgspec.json.encode(change)
        return self._decoded(await self._tell("POST", path, body), Changed)

    async def delete(self, project: str, name: str, uid: str = "") -> None:
        which = f"?{urlencode({'uid': uid})}" if uid else ""
        await self._tell("DELETE", f"{_of(project, 'workloads', name)}{which}")

    async def fleet(self) -> Fleet:
        return await self._ask("GET", "/v1/fleet", Fleet)

    async def copies(self) -> list[Copy]:
        return await self._ask("GET", "/v1/fleet/copies", list[Copy])

    async def change_roll(self, number: int, change: dict[str, Any]) -> Rolling:
        return await self._ask("PATCH", f"/v1/runtimes/{number}/roll", Rolling, msgspec.json.encode(change))

    def follow_roll(self, number: int) -> AsyncGenerator[Rolling]:
        return self._stream(f"/v1/runtimes/{number}/roll", Rolling)

    async def images(self) -> list[str]:
        # Only who looks for an image needs to know how a registry is asked.
        from pincompute.kube.registry import known

        return await known(self._context) if self._context.images else []

    def follow(self, project: str, name: str) -> AsyncGenerator[Summary]:
        return self._stream(_of(project, "workloads", name, "progress"), Summary)

    def logs(self, project: str, name: str, wanted: Wanted) -> AsyncGenerator[Said]:
        return self._stream(f"{_of(project, 'workloads', name, 'logs')}?{_query(wanted)}", Said)

    @asynccontextmanager
    async def enter(self, project: str, name: str, inside: Inside) -> AsyncIterator[Execution]:
        # Only who goes in needs to know how that is spoken of.
        from pincompute.cli.both_ways import both_ways
        from pincompute.kube.execution import Execution

        path = f"{_of(project, 'workloads', name, 'programs')}?{_query(inside)}"
        async with both_ways(self._context, path, self._headers, self._again) as socket:
            yield Execution(socket, f"{project}/{name}", self._context.desk)

    @asynccontextmanager
    async def reach(self, project: str, name: str, copy: str, port: int) -> AsyncIterator[Forwarding]:
        from pincompute.cli.both_ways import both_ways
        from pincompute.kube.forwarding import Forwarding

        path = f"{_of(project, 'workloads', name, 'ports', str(port))}?{urlencode({'copy': copy})}"
        async with both_ways(self._context, path, self._headers, self._again) as socket:
            yield Forwarding(socket, f"{project}/{name}", self._context.desk)

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Response]:
        send = partial(self._asker.send, method, path, body, headers or {})
        answer = await self._again.heard(send, self._asker.pass_over)
        try:
            if answer.status >= 300:
                raise refusal(await answer.read(), f"the desk answered {answer.status}")
            yield answer
        finally:
            await self._asker.let_go(answer)

    async def _ask(self, method: str, path: str, type_: type[T], body: bytes = b"") -> T:
        async with self._asked(method, path, body) as answer:
            return self._decoded(await answer.read(), type_)

    async def _tell(self, method: str, path: str, body: bytes = b"") -> bytes:
        """What is to be done once."""
        status, said = await self._told(method, path, body)
        if status == ON_THE_WAY:
            raise Refused(on_its_way(msgspec.json.decode(said, type=Receipt)))
        return said

    async def _told(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """While it is on its way, the same is asked again under its key."""
        key, said = {"Idempotency-Key": os.urandom(16).hex()}, b""
        for _ in range(PATIENCE):
            async with self._asked(method, path, body, key) as answer:
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

    async def _stream(self, path: str, type_: type[T]) -> AsyncGenerator[T]:
        """One document a line; whoever closes it has hung up."""
        decoder = msgspec.json.Decoder(type_)
        async with self._asked("GET", path) as answer:
            splitter = Splitter()
            while piece := await answer.piece():
                for line in splitter.feed(piece):
                    yield _read(line, decoder)


def _of(project: str, *steps: str) -> str:
    """Where something of a project is: names are as somebody has typed them."""
    return "/".join(["/v1/projects", *(quote(each, safe="") for each in (project, *steps))])


def _wished(wish: Wish | None) -> str:
    return f"?{urlencode({'breakGlass': wish.because, 'seconds': wish.seconds})}" if wish else ""


def _query(asked: msgspec.Struct) -> str:
    said = msgspec.to_builtins(asked)
    return urlencode([(field, word) for field, value in said.items() for word in _words(value)])


def _words(said: Any) -> list[str]:
    """As a query has them."""
    if isinstance(said, bool):
        return [str(said).lower()]
    return [str(said)] if isinstance(said, str | int) else list(said)


def _read(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError:
        # The last line of a stream that broke says why.
        raise refusal(line, "the desk broke off") from None


def on_its_way(kept: Receipt) -> Problem:
    """It is no refusal; but what was asked for is not there, and whoever waits for it must know."""
    what = f"{kept.name} is accepted as {kept.id}, and its cluster has not taken it yet"
    waits = kept.waits or "nothing is known of why"
    return Problem(ON_ITS_WAY, what, note=f"{waits}\nit is carried there as soon as that can be", next="pin status")


def _in_file(problem: Problem, file: str) -> Problem:
    return problem._replace(where=problem.where._replace(file=file)) if problem.where.line else problem
