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
_PROJECTS = Resource(GROUP, VERSION, Project.plural(), Project.__name__, namespaced=False)


async def await_project(platform: Platform) -> None:
    """Return when work may come in."""
    project = yaml.safe_load((MANIFESTS / "project.yaml").read_text())
    name = project["metadata"]["name"]
    try:
        async with asyncio.timeout(PATIENCE), Client(load(platform.home.kubeconfig), agent="pin") as client:
            await _ask_for(client, project)
            await _made(client, name)
    except TimeoutError as error:
        what = f"the project {name} was not made within {PATIENCE:.0f} s"
        next_ = f"pin kubectl --name {platform.name} describe project {name}"
        raise Refused(Problem(PART_FAILED, what, next=next_)) from error


async def _ask_for(client: Client, project: Object) -> None:
    """What is there already is theirs, whatever it says by now."""
    while True:
        try:
            with suppress(AlreadyExists):
                await client.create(_PROJECTS, project, manager=ENGINE)
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
