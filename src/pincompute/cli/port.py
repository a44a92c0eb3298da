"""The hand's one port to a platform, with two adapters: the desk, and a kubeconfig where that is all there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractAsyncContextManager

    from pincompute.api.account import Account, Answer, Changed
    from pincompute.api.change import Change
    from pincompute.api.documents import Document
    from pincompute.api.entering import Inside
    from pincompute.api.fleet import Copy, Fleet, Rolling
    from pincompute.api.glass import Wish
    from pincompute.api.logs import Said, Wanted
    from pincompute.api.preview import BuildPreview, Preview
    from pincompute.api.provenance import ProvenanceAccount
    from pincompute.api.receipt import Outcome
    from pincompute.api.summary import Sight, Summary
    from pincompute.api.tenancy import Tenancy, Tenant
    from pincompute.api.whoami import Whoami
    from pincompute.api.workload import Workload
    from pincompute.kube.execution import Execution
    from pincompute.kube.forwarding import Forwarding


class Port(Protocol):
    """What can be asked of a platform."""

    async def submit(self, text: str, file: str, project: str, wish: Wish | None = None) -> Summary: ...

    async def submit_set(self, given: Sequence[Document], project: str, wish: Wish | None = None) -> list[Outcome]:
        """Of which all are taken or none."""
        ...

    async def deploy(self, project: str, name: str, version: str, wish: Wish | None = None) -> Summary:
        """What was published."""
        ...

    async def plan_build(self, project: str, name: str, version: str) -> BuildPreview:
        """What deploying what was published would do."""
        ...

    async def whoami(self) -> Whoami:
        """Who asks."""
        ...

    async def project(self, name: str) -> Tenancy:
        """All that is known of it."""
        ...

    async def projects(self) -> list[Tenant]:
        """Those that whoever asks may look at."""
        ...

    async def provenance(self, project: str, name: str) -> ProvenanceAccount: ...

    async def plan(self, text: str, project: str) -> list[Preview]:
        """What documents would become and change, all or none."""
        ...

    async def all(self, project: str) -> list[Summary]: ...

    def watch(self, project: str) -> AsyncGenerator[Sight]:
        """All of them now, and then each change."""
        ...

    async def find(self, project: str, name: str) -> Workload:
        """One workload whole."""
        ...

    async def account(self, project: str, name: str) -> Account:
        """All that is known of it."""
        ...

    async def why(self, project: str, name: str) -> Answer: ...

    async def change(self, project: str, name: str, change: Change) -> Changed:
        """One thing of what is there, written only if nobody else has changed it meanwhile."""
        ...

    def follow(self, project: str, name: str) -> AsyncGenerator[Summary]: ...

    def logs(self, project: str, name: str, wanted: Wanted) -> AsyncGenerator[Said]: ...

    def enter(self, project: str, name: str, inside: Inside) -> AbstractAsyncContextManager[Execution]:
        """Run a program in one of its copies."""
        ...

    def reach(self, project: str, name: str, copy: str, port: int) -> AbstractAsyncContextManager[Forwarding]:
        """One connection to a port of one of its copies."""
        ...

    async def delete(self, project: str, name: str, uid: str = "") -> None:
        """With a uid only that very one, and not another that has its name by now."""
        ...

    async def fleet(self) -> Fleet:
        """Every workload of every project, and what they are planned by."""
        ...

    async def copies(self) -> list[Copy]:
        """Every pod of theirs."""
        ...

    async def change_roll(self, number: int, change: dict[str, Any]) -> Rolling:
        """Change how a runtime is rolled; what is null goes."""
        ...

    def follow_roll(self, number: int) -> AsyncGenerator[Rolling]: ...

    async def images(self) -> list[str]:
        """Those that the platform keeps itself."""
        ...
