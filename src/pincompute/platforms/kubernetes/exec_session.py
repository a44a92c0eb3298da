"""Opens exec sessions and port forwards into a running pod of a workload, chosen by replica name."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pincompute.api.exec_request import ExecRequest
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REPLICA_UNKNOWN
from pincompute.kube.client import Client
from pincompute.kube.exec_stream import ExecStream
from pincompute.kube.port_forward import PortForward
from pincompute.platforms.kubernetes.logs.container_runs import LogOwner, container_histories
from pincompute.platforms.kubernetes.logs.lines import list_pods_of_workload


@asynccontextmanager
async def open_exec(client: Client, workload: Workload, request: ExecRequest) -> AsyncGenerator[ExecStream]:
    """Runs a command in a container of the workload."""
    pod, container = await _choose_container(client, workload, request.replica, request.container)
    async with client.exec(
        workload.metadata.namespace, pod, request.command,
        container=container, stdin=request.input, tty=request.terminal,
    ) as execution:  # fmt: skip
        yield execution


@asynccontextmanager
async def open_port_forward(client: Client, workload: Workload, replica: str, port: int) -> AsyncGenerator[PortForward]:
    """Opens one connection to a port of the workload."""
    pod, _ = await _choose_container(client, workload, replica, "")
    async with client.port_forward(workload.metadata.namespace, pod, port) as connection:
        yield connection


async def _choose_container(client: Client, workload: Workload, replica: str, container: str) -> tuple[str, str]:
    """The pod and container to connect to: of the named replica, or of the newest one that runs."""
    project, name = workload.metadata.namespace, workload.metadata.name
    pods = await list_pods_of_workload(client, project, name)
    last = [each.sources[-1] for each in container_histories(LogOwner.of(name, workload), pods, (), container)]
    running = {each.replica: each.run for each in last if each.run.end is None}
    fitting = [run for each, run in running.items() if replica in ("", each, run.pod)]
    if not fitting:
        containers = sorted({each.name for pod in pods for each in pod.spec.containers})
        raise _no_running_replica(workload, replica, container, sorted(running, key=len), containers)
    found = max(fitting, key=lambda each: (each.created, each.pod))
    return found.pod, found.container


def _no_running_replica(
    workload: Workload, replica: str, container: str, running: list[str], containers: list[str]
) -> Refused:
    name = workload.metadata.name
    where = Where(object=f"{workload.metadata.namespace}/{name}")
    if workload.status.simulated:
        return Refused(Problem(REPLICA_UNKNOWN, f"{name} is simulated: its pods run no containers", where))
    what = f"no running replica '{replica}' of {name}" if replica else f"{name} has no running replica"
    note = f"running: {', '.join(running)}" if running else ""
    if container:
        what = f"{what} with a container '{container}'"
        note = f"its containers: {', '.join(containers)}" if containers else ""
    return Refused(Problem(REPLICA_UNKNOWN, what, where, note, f"pin why {name}"))
