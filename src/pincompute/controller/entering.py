"""Entering: into which pod of a workload somebody goes who names the workload, or one copy of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pincompute.api.entering import Inside
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import COPY_UNKNOWN
from pincompute.controller.lines import pods_of
from pincompute.controller.turns import Whose, series_of
from pincompute.kube.client import Client
from pincompute.kube.execution import Execution
from pincompute.kube.forwarding import Forwarding


@asynccontextmanager
async def entered(client: Client, workload: Workload, inside: Inside) -> AsyncGenerator[Execution]:
    """Run a program beside its own."""
    pod, container = await _chosen(client, workload, inside.copy, inside.container)
    async with client.execute(
        workload.metadata.namespace, pod, inside.command,
        container=container, stdin=inside.input, tty=inside.terminal,
    ) as execution:  # fmt: skip
        yield execution


@asynccontextmanager
async def reached(client: Client, workload: Workload, copy: str, port: int) -> AsyncGenerator[Forwarding]:
    """One connection to a port of it."""
    pod, _ = await _chosen(client, workload, copy, "")
    async with client.forward(workload.metadata.namespace, pod, port) as line:
        yield line


async def _chosen(client: Client, workload: Workload, copy: str, container: str) -> tuple[str, str]:
    """The pod, and the container, of one that runs; the newest where nobody says which."""
    project, name = workload.metadata.namespace, workload.metadata.name
    pods = await pods_of(client, project, name)
    last = [each.turns[-1] for each in series_of(Whose.of(name, workload), pods, (), container)]
    there = {each.copy: each.life for each in last if each.life.end is None}
    fitting = [life for letters, life in there.items() if copy in ("", letters, life.pod)]
    if not fitting:
        containers = sorted({each.name for pod in pods for each in pod.spec.containers})
        raise _none(workload, copy, container, sorted(there, key=len), containers)
    found = max(fitting, key=lambda each: (each.created, each.pod))
    return found.pod, found.container


def _none(workload: Workload, copy: str, container: str, there: list[str], containers: list[str]) -> Refused:
    name = workload.metadata.name
    where = Where(object=f"{workload.metadata.namespace}/{name}")
    if workload.status.simulated:
        return Refused(Problem(COPY_UNKNOWN, f"{name} is simulated: no program runs that anybody could go into", where))
    what = f"no copy '{copy}' of {name} runs" if copy else f"nothing of {name} runs"
    note = f"there are {', '.join(there)}" if there else ""
    if container:
        what = f"{what} with a container '{container}'"
        note = f"there are containers {', '.join(containers)}" if containers else ""
    return Refused(Problem(COPY_UNKNOWN, what, where, note, f"pin why {name}"))
