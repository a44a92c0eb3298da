"""Creates the first project, and waits until the operator has made its namespace."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import yaml

from pincompute.api.names import ENGINE, GROUP, VERSION
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, NotFound
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import NAMESPACES, Object, Resource

PROJECT_TIMEOUT_S = 60.0
PROJECTS = Resource(GROUP, VERSION, Project.plural(), Project.__name__, namespaced=False)


async def ensure_first_project(platform: Platform) -> None:
    """Create the first project; return when it accepts workloads."""
    async with Client(load_kubeconfig(platform.home.kubeconfig), agent="pin") as client:
        await ensure_project(client, next_=f"pin kubectl --name {platform.name} describe project")


async def ensure_project(client: Client, *, next_: str, name: str = "", manager: str = ENGINE) -> str:
    """Create a project if it does not exist, wait for its namespace, and return its name.

    `next_` is the command, without the name, that inspects a project; the error after a timeout suggests it.
    """
    project = yaml.safe_load((MANIFESTS / "project.yaml").read_text())
    name = name or project["metadata"]["name"]
    try:
        async with asyncio.timeout(PROJECT_TIMEOUT_S):
            await _create_project(client, {**project, "metadata": {"name": name}}, manager)
            await _wait_for_namespace(client, name)
    except TimeoutError as error:
        what = f"project {name} has no namespace after {PROJECT_TIMEOUT_S:.0f} s"
        raise Refused(Problem(PART_FAILED, what, next=f"{next_} {name}")) from error
    return name


async def _create_project(client: Client, project: Object, manager: str) -> None:
    """Create the project; an existing one is left as its owner has written it."""
    while True:
        try:
            with suppress(AlreadyExists):
                await client.create(PROJECTS, project, manager=manager)
        except NotFound:
            # The API server answers 404 until it serves the CRD that was just applied.
            await asyncio.sleep(0.1)
        else:
            return


async def _wait_for_namespace(client: Client, name: str) -> None:
    while True:  # the server may end a watch at any time
        async with aclosing(client.watch(NAMESPACES, fields=f"metadata.name={name}")) as events:
            async for _ in events:
                return
