"""Protocols of access to a platform, spelled once for the desk and the CLI.

They are implemented by each platform, which the desk uses, and the CLI with a kubeconfig; and by the CLI's client of a
desk. Imports are for types only, because every command loads this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from aiohttp import ClientWebSocketResponse

    from pincompute.api.exec_request import ExecRequest
    from pincompute.api.fleet import Fleet, FleetPod, RollStatus
    from pincompute.api.logs import LogItem, LogQuery
    from pincompute.api.project import Project
    from pincompute.api.resource_state import ResourceState
    from pincompute.api.unowned import UnownedObjects
    from pincompute.api.usage import WorkloadUsage
    from pincompute.api.workload import Workload
    from pincompute.api.workload_detail import Diagnosis, WorkloadDetail
    from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary


class ReplicaConnection(Protocol):
    """A connection to a replica, whose messages are relayed unread."""

    socket: ClientWebSocketResponse


class ReplicaLocation(NamedTuple):
    """Where a container of a replica is."""

    pod: str
    uid: str
    container: str
    node: str
    address: str
    """Of the node."""


class WorkloadReader(Protocol):
    """Reads workloads by project and name, and connects to their replicas. Unknown names raise Refused."""

    async def list_summaries(self, project: str) -> list[WorkloadSummary]: ...

    async def list_unowned(self, project: str) -> UnownedObjects:
        """Workloads without an owner among the members, and objects whose workload was deleted."""
        ...

    async def list_usage(self, project: str) -> list[WorkloadUsage]:
        """CPU and memory that the workloads of a project use now; none for those without pods."""
        ...

    async def get_workload(self, project: str, name: str) -> Workload:
        """The resource as it is in the cluster."""
        ...

    async def describe(self, project: str, name: str) -> WorkloadDetail:
        """A workload in full: its Kubernetes objects, replicas, events and revisions."""
        ...

    async def explain(self, project: str, name: str) -> Diagnosis:
        """Why a workload has not reached its goal."""
        ...

    async def project_document(self, name: str) -> Project:
        """The project itself, as it is in the cluster."""
        ...

    def follow_project(self, name: str) -> AsyncGenerator[ResourceState]:
        """The present state of a project, then each change, until it is deleted."""
        ...

    def watch(self, project: str) -> AsyncGenerator[WorkloadChange]:
        """All workloads of a project now, then each change."""
        ...

    def follow(self, project: str, name: str) -> AsyncGenerator[WorkloadSummary]:
        """The present summary, then each change, until the workload is deleted."""
        ...

    def logs(self, project: str, name: str, query: LogQuery) -> AsyncGenerator[LogItem]: ...

    def exec(self, project: str, name: str, request: ExecRequest) -> AbstractAsyncContextManager[ReplicaConnection]:
        """Runs a program in a replica."""
        ...

    def port_forward(
        self, project: str, name: str, replica: str, port: int
    ) -> AbstractAsyncContextManager[ReplicaConnection]:
        """Opens one connection to a port of a replica; of any running one, if `replica` is empty."""
        ...


class RuntimeController(Protocol):
    """Reads what runs with which runtime, and controls rolls."""

    async def fleet(self) -> Fleet:
        """Every workload of every project, and the resources and facts by which they are planned."""
        ...

    async def list_pods(self) -> list[FleetPod]:
        """Active pods of all workloads."""
        ...

    async def change_roll(self, number: int, change: dict[str, Any]) -> RollStatus:
        """Merges a change into the roll of a runtime; null removes a field."""
        ...

    def follow_roll(self, number: int) -> AsyncGenerator[RollStatus]:
        """The present status of a roll, then each change."""
        ...
