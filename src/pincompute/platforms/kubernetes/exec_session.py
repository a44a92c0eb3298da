"""Opens exec sessions and port forwards into a running pod of a workload, chosen by replica name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec

from pincompute.api.exec_request import ExecRequest
from pincompute.api.logs import ContainerRun
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REPLICA_UNKNOWN
from pincompute.kube.client import Client
from pincompute.kube.exec_stream import ExecStream
from pincompute.kube.port_forward import PortForward
from pincompute.kube.resource import PODS
from pincompute.planning.observed_pods import PodStatus
from pincompute.planning.pods.container_runs import LoggedPod, LoggedPodSpec
from pincompute.platforms.access import ReplicaLocation
from pincompute.platforms.kubernetes.logs.container_runs import LogOwner, container_histories
from pincompute.platforms.kubernetes.logs.lines import list_pods_of_workload


class _LocatedPodSpec(LoggedPodSpec, frozen=True):
    node_name: str = ""


class _LocatedPodStatus(PodStatus, frozen=True):
    host_ip: str = msgspec.field(name="hostIP", default="")


class _LocatedPod(LoggedPod, frozen=True):
    """Fields with which a pod is found on its node."""

    spec: _LocatedPodSpec = _LocatedPodSpec()
    status: _LocatedPodStatus = _LocatedPodStatus()


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


async def locate_container(
    client: Client, workload: Workload, replica: str, container: str, *, ended: bool
) -> ReplicaLocation:
    """The node and the pod of a container that runs, or that has ended last."""
    project, name = workload.metadata.namespace, workload.metadata.name
    pods = (await client.list(PODS, project, labels=f"{WORKLOAD_LABEL}={name}", type=_LocatedPod)).items
    run = _select_run(workload, pods, replica, container, ended=ended)
    pod = next(each for each in pods if each.metadata.uid == run.uid)
    return ReplicaLocation(run.pod, run.uid, run.container, pod.spec.node_name, pod.status.host_ip)


async def _choose_container(client: Client, workload: Workload, replica: str, container: str) -> tuple[str, str]:
    """The pod and container to connect to: of the named replica, or of the newest one that runs."""
    pods = await list_pods_of_workload(client, workload.metadata.namespace, workload.metadata.name)
    found = _select_run(workload, pods, replica, container)
    return found.pod, found.container


def _select_run(
    workload: Workload, pods: Sequence[LoggedPod], replica: str, container: str, *, ended: bool = False
) -> ContainerRun:
    histories = container_histories(LogOwner.of(workload.metadata.name, workload), pods, (), container)
    sources = [
        source
        for each in histories
        for source in (each.sources if ended else each.sources[-1:])
        if (source.run.end is not None) == ended
    ]
    by_replica = {each.replica: each.run for each in sources}
    fitting = [run for each, run in by_replica.items() if replica in ("", each, run.pod)]
    if not fitting:
        containers = sorted({each.name for pod in pods for each in pod.spec.containers})
        raise _no_such_replica(workload, replica, container, sorted(by_replica, key=len), containers, ended=ended)
    return max(fitting, key=lambda each: (each.end.at if ended and each.end else "", each.created, each.pod))


def _no_such_replica(  # noqa: PLR0913  (all of the message)
    workload: Workload, replica: str, container: str, fitting: list[str], containers: list[str], *, ended: bool
) -> Refused:
    name = workload.metadata.name
    where = Where(object=f"{workload.metadata.namespace}/{name}")
    if workload.status.simulated:
        return Refused(Problem(REPLICA_UNKNOWN, f"{name} is simulated: its pods run no containers", where))
    state = "ended" if ended else "running"
    what = f"no {state} replica '{replica}' of {name}" if replica else f"{name} has no {state} replica"
    note = f"{state}: {', '.join(fitting)}" if fitting else ""
    if container:
        what = f"{what} with a container '{container}'"
        note = f"its containers: {', '.join(containers)}" if containers else ""
    return Refused(Problem(REPLICA_UNKNOWN, what, where, note, f"pin why {name}"))
