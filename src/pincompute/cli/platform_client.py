"""Protocol of all that commands ask of a platform: by its desk, or straight to a cluster by a kubeconfig."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pincompute.platforms.access import RuntimeController, WorkloadReader

DELIVERY_WAIT_S = 30.0
"""How long to wait by default until what the desk has accepted reaches the cluster."""

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from pincompute.api.audit import AuditPage, AuditQuery
    from pincompute.api.break_glass import BreakGlassRequest
    from pincompute.api.change import Change
    from pincompute.api.debug import DebugRequest
    from pincompute.api.documents import Document
    from pincompute.api.exec_request import ExecRequest
    from pincompute.api.history import HistoryPage, HistoryQuery, LastState
    from pincompute.api.preview import BuildPreview, Preview
    from pincompute.api.project_view import ProjectSummary, ProjectView
    from pincompute.api.provenance import ProvenanceChain
    from pincompute.api.receipt import SubmissionOutcome
    from pincompute.api.resource_state import ResourceState
    from pincompute.api.whoami import Whoami
    from pincompute.api.workload_detail import ChangeResult
    from pincompute.api.workload_summary import WorkloadSummary
    from pincompute.cli.config_client import ConfigClient
    from pincompute.cli.secret_client import SecretClient
    from pincompute.cli.session_client import SessionClient
    from pincompute.kube.exec_stream import ExecStream
    from pincompute.kube.port_forward import PortForward


class PlatformClient(WorkloadReader, RuntimeController, Protocol):
    """Reads and rolls of a platform, and submissions to it. Each raises `Refused` with the platform's problems."""

    @property
    def config(self) -> ConfigClient:
        """The configuration bundles, which only the desk publishes."""
        ...

    @property
    def sessions(self) -> SessionClient:
        """The sessions of browsers, which only the desk has."""
        ...

    async def submit(
        self, text: str, file: str, project: str, break_glass: BreakGlassRequest | None = None
    ) -> WorkloadSummary: ...

    async def submit_set(
        self, documents: Sequence[Document], project: str, break_glass: BreakGlassRequest | None = None
    ) -> list[SubmissionOutcome]:
        """Submit all of the documents, or none."""
        ...

    async def deploy_project(self, name: str, text: str, file: str, generation: int = 0) -> ResourceState:
        """Create or change a project; with a generation only if it still has that one."""
        ...

    async def deploy_infrastructure(self, kind: str, name: str, text: str, file: str) -> ResourceState:
        """Create a runtime or a version of a runtime part."""
        ...

    async def delete_project(self, name: str) -> None:
        """Delete a project without workloads."""
        ...

    async def deploy(
        self, project: str, name: str, version: str, break_glass: BreakGlassRequest | None = None
    ) -> WorkloadSummary:
        """Submit a published build."""
        ...

    async def plan_build(self, project: str, name: str, version: str) -> BuildPreview:
        """Preview the deploy of a published build."""
        ...

    async def whoami(self) -> Whoami: ...

    async def get_project(self, name: str) -> ProjectView: ...

    async def list_projects(self) -> list[ProjectSummary]:
        """List the projects that the caller may view."""
        ...

    async def audit_page(self, query: AuditQuery, project: str | None) -> AuditPage:
        """A page of the audit log of a project; of the whole platform for None."""
        ...

    async def history_page(self, project: str, name: str, query: HistoryQuery) -> HistoryPage:
        """A page of the history of a workload; without a name, of the whole project."""
        ...

    async def last_state(self, project: str, name: str) -> LastState:
        """The last known state of a workload, also of a deleted one."""
        ...

    @property
    def list_note(self) -> str:
        """Why the last list may be old, or was read in another way than usual; empty otherwise."""
        ...

    def secrets(self, project: str) -> SecretClient:
        """The secrets of a project."""
        ...

    async def provenance(self, project: str, name: str) -> ProvenanceChain: ...

    async def plan(self, text: str, project: str) -> list[Preview]:
        """Preview documents; one invalid document refuses all."""
        ...

    async def change(self, project: str, name: str, change: Change) -> ChangeResult:
        """Apply one change, unless the workload was changed at the same time."""
        ...

    # Narrower than in WorkloadReader: commands also use what the streams of Kubernetes carry.

    def exec(self, project: str, name: str, request: ExecRequest) -> AbstractAsyncContextManager[ExecStream]: ...

    def open_session(self, project: str, name: str, request: DebugRequest) -> AbstractAsyncContextManager[ExecStream]:
        """Opens a session with the agent of a replica's node. Raises AgentUnavailable if there is none."""
        ...

    def port_forward(
        self, project: str, name: str, replica: str, port: int
    ) -> AbstractAsyncContextManager[PortForward]: ...

    async def delete(self, project: str, name: str, uid: str = "") -> None:
        """Delete a workload; with a uid only that one, and not a later one of the same name."""
        ...

    async def list_images(self) -> list[str]:
        """List the images in the platform's own registry."""
        ...
