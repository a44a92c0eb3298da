"""Two projects with members, and a door that believes everybody's word of who they are."""

from __future__ import annotations

import io
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from control_plane import ControlPlane
from desks import Arrange, World, as_it_is, world
from pincompute.api.documents import MAX_BYTES
from pincompute.api.identity import Identity
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.api.policy import Policy
from pincompute.controller.resources import NOUNS
from pincompute.kube.resource import Object
from pincompute.submission.people.door import Door, Shown
from pincompute.submission.turns import Limits
from workloads import HELLO, cluster, new_project


class Believing:
    """`vera` is vera, and `root` administers the platform."""

    async def identify(self, shown: Shown) -> Identity | None:
        return Identity(shown.token, administers=shown.token == "root") if shown.token else None


class Answer(NamedTuple):
    status: int
    body: Any

    @property
    def reason(self) -> str:
        found: str = self.body["errors"][0]["reason"]
        return found


class Tenants(NamedTuple):
    world: World
    ads: str
    """Of olga; dan deploys, and vera looks."""
    search: str
    """Of otto."""

    async def ask(self, who: str, method: str, path: str, body: str | bytes | object = b"") -> Answer:
        said = body if isinstance(body, str | bytes) else msgspec.json.encode(body)
        # The client warns of what is large and comes in one piece.
        sent = said if len(said) < MAX_BYTES else io.BytesIO(said.encode() if isinstance(said, str) else said)
        headers = {"Authorization": f"Bearer {who}"} if who else {}
        async with self.world.http.request(method, f"/v1{path}", data=sent, headers=headers) as answer:
            if answer.content_type == "application/x-ndjson":
                return Answer(answer.status, None)
            text = await answer.read()
            return Answer(answer.status, msgspec.json.decode(text) if text.startswith((b"{", b"[")) else text)

    async def deploy(self, who: str, project: str, document: str = HELLO) -> Answer:
        return await self.ask(who, "POST", f"/projects/{project}/submissions", document)


@asynccontextmanager
async def tenants(
    plane: ControlPlane,
    folder: Path,
    ads: Object | None = None,
    policies: tuple[Policy, ...] = (),
    limits: Limits | None = None,
    *,
    door: Door | None = None,
    arrange: Arrange = as_it_is,
    where: str = "",
) -> AsyncGenerator[Tenants]:
    """What more is said of the project ads; and the platform's policies."""
    async with cluster(plane) as client:
        names = [await new_project(client) for _ in range(2)]
        olga = {"owner": {"people": ["olga"]}, "deployer": {"people": ["dan"]}, "viewer": {"people": ["vera"]}}
        nothing: Object = {}
        otto = {"owner": {"people": ["otto"]}}
        for name, members, more in zip(names, (olga, otto), (ads or {}, nothing), strict=True):
            spec: Object = {
                "owner": f"team-{name}",
                "contact": f"#{name}",
                "review": "open",
                "quota": {"on-demand": {}},
            }
            whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name}}
            await client.apply(
                {**whole, "spec": {**spec, "members": members, **more}}, NOUNS["Project"], manager=ENGINE
            )
        try:
            shown = door or Door([Believing()])
            async with world(
                plane, folder, shown, policies=policies, limits=limits, arrange=arrange, where=where
            ) as here:
                yield Tenants(here, *names)
        finally:
            for name in names:
                await client.delete(NOUNS["Project"], name)


def nowhere() -> str:
    return f"t-{secrets.token_hex(4)}"
