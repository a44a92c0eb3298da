"""The first project: asked for once, and made so by the operator, as any other."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import yaml

from pincompute.api.names import ENGINE, GROUP, VERSION
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, NotFound
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import NAMESPACES, Object, Resource

PATIENCE = 60.0
PROJECTS = Resource(GROUP, VERSION, Project.plural(), Project.__name__, namespaced=False)


async def await_project(platform: Platform) -> None:
    """Return when work may come in."""
    async with Client(load(platform.home.kubeconfig), agent="pin") as client:
        await make_project(client, next_=f"pin kubectl --name {platform.name} describe project")


async def make_project(client: Client, *, next_: str, name: str = "", manager: str = ENGINE) -> str:
    """Its name, once the operator has made it so; `next_` looks at a project, if that does not come about."""
    project = yaml.safe_load((MANIFESTS / "project.yaml").read_text())
    name = name or project["metadata"]["name"]
    try:
        async with asyncio.timeout(PATIENCE):
            await _ask_for(client, {**project, "metadata": {"name": name}}, manager)
            await _made(client, name)
    except TimeoutError as error:
        what = f"the project {name} was not made within {PATIENCE:.0f} s"
        raise Refused(Problem(PART_FAILED, what, next=f"{next_} {name}")) from error
    return name


async def _ask_for(client: Client, project: Object, manager: str) -> None:
    """What is there already is theirs, whatever it says by now."""
    while True:
        try:
            with suppress(AlreadyExists):
                await client.create(PROJECTS, project, manager=manager)
        except NotFound:
            # The API server serves a new kind a moment after it has heard of it.
            await asyncio.sleep(0.1)
        else:
            return


async def _made(client: Client, name: str) -> None:
    while True:  # the server ends a watch when it likes
        async with aclosing(client.watch(NAMESPACES, fields=f"metadata.name={name}")) as events:
            async for _ in events:
                return
