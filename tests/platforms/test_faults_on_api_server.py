"""Every fault of the catalogue on a real API server: written as one valid revision, removed again, and overwritten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.change import Break, Heal
from pincompute.api.names import DESK, ENGINE, OPERATOR
from pincompute.api.structs import without_defaults
from pincompute.api.workload import Workload
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.resource import CONFIG_MAPS
from pincompute.planning.edits import preserve_edits
from pincompute.planning.faults.catalogue import Fault
from pincompute.platforms.kubernetes.changes import write_change_to_workload
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from planning.faults.test_catalogue import FAULTS_AND_KINDS, TEMPLATED, with_prerequisites
from planning.test_edits import recorded, workload
from workloads import cluster_client, new_project

pytestmark = pytest.mark.cluster


class FaultyProject(NamedTuple):
    client: Client
    project: str

    async def deploy(self, document: Workload) -> Workload:
        return await WorkloadClient(self.client).write_workload(document, manager=DESK)

    async def change(self, owner: Workload, change: Break | Heal) -> Workload:
        applied = await write_change_to_workload(self.client, owner, change, manager=DESK, submission="")
        return applied.workload

    async def record_revision(self, owner: Workload) -> None:
        """Writes the record of a revision, as the operator does."""
        for each in recorded(owner):
            await self.client.apply(each, CONFIG_MAPS, manager=OPERATOR)

    def document(self, kind: str, name: str, **spec: Any) -> Workload:
        template = workload(kind, **spec)
        metadata = type(template.metadata)(name=name, namespace=self.project)
        return msgspec.structs.replace(template, metadata=metadata)


@pytest.fixture
async def faulty_project(plane: ControlPlane) -> AsyncIterator[FaultyProject]:
    async with cluster_client(plane) as client:
        yield FaultyProject(client, await new_project(client))


@pytest.mark.parametrize("spec", [{}, TEMPLATED], ids=["short", "template"])
async def test_every_fault_is_written_healed_and_overwritten(
    faulty_project: FaultyProject, spec: dict[str, Any]
) -> None:
    for index, (fault, kind) in enumerate(FAULTS_AND_KINDS):
        document = with_prerequisites(fault, faulty_project.document(kind, f"w-{index}", **spec))
        await _check_fault(faulty_project, fault, document)


async def _check_fault(here: FaultyProject, fault: Fault, document: Workload) -> None:
    label = f"{fault.name} of {document.kind}"
    before = with_prerequisites(fault, await here.deploy(document))
    original = without_defaults(before.spec)
    await here.record_revision(before)
    broken = await here.change(before, Break(by="ann", fault=fault.name))
    assert without_defaults(broken.spec) == without_defaults(fault.apply(before).spec), label
    assert broken.metadata.generation == before.metadata.generation + 1, label
    healed = await here.change(broken, Heal(by="ann"))
    assert without_defaults(healed.spec) == original, label
    await here.record_revision(healed)
    broken_again = await here.change(with_prerequisites(fault, healed), Break(by="ann", fault=fault.name))
    assert without_defaults(broken_again.spec) == without_defaults(broken.spec), label
    deployed = await here.deploy(document)
    # A file resumes no paused rollout, and overwrites everything else.
    assert without_defaults(deployed.spec) == without_defaults(preserve_edits(broken_again, document).spec), label


async def test_change_that_removes_a_field_of_another_manager_is_one_revision(faulty_project: FaultyProject) -> None:
    before = await faulty_project.deploy(faulty_project.document("PinterestTrainingJob", "shared", workers=0))
    resource = CUSTOM_RESOURCES[before.kind]
    patch = {"spec": {"workers": 3}}
    edited = await faulty_project.client.patch(
        resource, "shared", faulty_project.project, patch, style="merge", manager=ENGINE
    )
    read = msgspec.convert(edited, type(before))
    await faulty_project.record_revision(read)
    broken = await faulty_project.change(read, Break(by="ann", fault="gang-unschedulable"))
    assert broken.metadata.generation == read.metadata.generation + 1
    assert without_defaults(broken.spec)["roles"] == {"worker": {"gpus": 64, "replicas": 3}}
    assert "workers" not in without_defaults(broken.spec)
