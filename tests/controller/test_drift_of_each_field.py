"""Every field of every native is put back after an edit by hand, on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.documents import read_documents
from pincompute.api.names import CLI_MANAGER
from pincompute.api.validation import parse_resource
from pincompute.controller.passes import Key
from pincompute.controller.resources import ALL_NATIVES, CUSTOM_RESOURCES
from pincompute.kube.errors import ApiError
from pincompute.kube.resource import Resource
from pincompute.kube.watch import Event
from pincompute.objects.content import Object, object_label, pointer_step
from pincompute.planning.kinds.planners import PLANNERS
from running_operator import TEST_CLUSTER, OperatedCluster, operated_cluster

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
EDITOR = "kubectl-edit"
_SET_BY_THE_SERVER = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp")
_IDENTITY = ("/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/metadata/ownerReferences/0/uid")
"""Fields by which an object and its owner are found: with others it is another object."""
_OTHER_WORDS = ("UDP", "Never", "Always", "Recreate", "Parallel", "Exact", "7", "7Mi", "IfHealthyBudget")
"""Values of enumerations and quantities, tried where any other text is refused."""

IMMUTABLE = {
    "ConfigMap": {"/data", "/immutable"},
    "Deployment": {"/spec/selector"},
    "DaemonSet": {"/spec/selector"},
    "Job": {
        "/spec/template",
        "/spec/completions",
        "/spec/completionMode",
        "/spec/podFailurePolicy",
        "/spec/backoffLimitPerIndex",
        "/spec/successPolicy",
    },
    "RoleBinding": {"/roleRef"},
    "StatefulSet": {"/spec/selector", "/spec/serviceName", "/spec/podManagementPolicy", "/spec/volumeClaimTemplates"},
}
"""Fields for which Kubernetes refuses every edit, so that there is nothing to put back."""
REFUSALS_OF_ANY_CHANGE = ("immutable", "updates to statefulset spec", "cannot change roleRef")


NOT_PUT_BACK = {
    "Job": {"/metadata/annotations"},
    "StatefulSet": {"/metadata/annotations/pinterest.com~1fixed"},
}
"""Records of what an object was created from. Planners read them: a Job that runs, or replicas that are held back,
continue with what they record, as they do after an upgrade of the operator."""


class NativeEdit(NamedTuple):
    """One edit of one field."""

    pointer: str
    operation: Object

    def __str__(self) -> str:
        return f"{self.operation['op']} {self.pointer} {self.operation.get('value', '')}"


def content_of(native: Object) -> Object:
    """Everything that an operator could put back."""
    metadata = {name: value for name, value in native["metadata"].items() if name not in _SET_BY_THE_SERVER}
    # The server counts the edits of a DaemonSet in an annotation.
    annotations = metadata.get("annotations", {})
    metadata["annotations"] = {name: value for name, value in annotations.items() if not name.startswith("deprecated.")}
    return {**{name: value for name, value in native.items() if name != "status"}, "metadata": metadata}


def leaf_values(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from leaf_values(below, pointer + pointer_step(name))
    elif isinstance(value, list) and value:
        for index, below in enumerate(value):
            yield from leaf_values(below, pointer + pointer_step(index))
    elif pointer not in _IDENTITY:
        yield pointer, value


def other_values(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1]
        case str():
            return [f"{value}x", *(each for each in _OTHER_WORDS if each != value)]
    return []


class NativeEditor:
    """Edits one native, and waits until the operator has put it back."""

    def __init__(self, operated: OperatedCluster, native: Object, baseline: Object) -> None:
        metadata = native["metadata"]
        self._client = operated.client
        self._resource: Resource = ALL_NATIVES[native["kind"]]
        self._name, self._namespace = metadata["name"], metadata.get("namespace", "")
        self._baseline = content_of(baseline)

    def watch(self) -> AsyncGenerator[Event[Any]]:
        return self._client.watch(self._resource, self._namespace, fields=f"metadata.name={self._name}")

    async def edit(self, edit: NativeEdit, events: AsyncGenerator[Event[Any]]) -> str:
        """The message of Kubernetes if it refuses the edit."""
        try:
            after = await self._client.patch(
                self._resource, self._name, self._namespace, [edit.operation], style="json", manager=EDITOR
            )
        except ApiError as error:
            return error.message
        if content_of(after) != self._baseline:
            await self._wait_restored(edit, int(after["metadata"]["resourceVersion"]), events)
        return ""

    async def _wait_restored(self, edit: NativeEdit, edited: int, events: AsyncGenerator[Event[Any]]) -> None:
        seen: Object = {}
        try:
            async with asyncio.timeout(60):
                async for event in events:
                    seen = event.object
                    if int(seen["metadata"]["resourceVersion"]) > edited and content_of(seen) == self._baseline:
                        return
        except TimeoutError:
            pytest.fail(f"{self._resource.kind}/{self._name}: not put back after {edit}; now {content_of(seen)}")


async def immutable_pointers(operated: OperatedCluster, native: Object) -> set[str]:
    """Edits each field of a native, with another valid value and by removal; returns the immutable fields."""
    metadata = native["metadata"]
    stored = await operated.client.get(ALL_NATIVES[native["kind"]], metadata["name"], metadata.get("namespace", ""))
    editor = NativeEditor(operated, native, stored)
    immutable: set[str] = set()
    async with aclosing(editor.watch()) as events:
        for pointer, value in leaf_values(native):
            if is_below(pointer, NOT_PUT_BACK.get(native["kind"], set())):
                continue
            for other in other_values(value):
                refusal = await editor.edit(
                    NativeEdit(pointer, {"op": "replace", "path": pointer, "value": other}), events
                )
                if any(each in refusal for each in REFUSALS_OF_ANY_CHANGE):
                    immutable.add(pointer)
                if not refusal:
                    break
            await editor.edit(NativeEdit(pointer, {"op": "remove", "path": pointer}), events)
    return immutable


def is_below(pointer: str, parents: set[str]) -> bool:
    return any(pointer == parent or pointer.startswith(f"{parent}/") for parent in parents)


@pytest.mark.parametrize("file", ["service", "stateful-set", "daemon", "job-set", "cron-job", "project"])
async def test_puts_back_every_field_of_every_native(plane: ControlPlane, file: str) -> None:
    async with operated_cluster(plane) as operated:
        document = read_documents((EXAMPLES / "long" / f"{file}.yaml").read_text(), file)[0]
        owner: Any = parse_resource(document, operated.project)
        if owner.CLUSTER_SCOPED:
            body = {**document.content, "metadata": {"name": f"{operated.project}-p"}}
            await operated.client.apply(body, CUSTOM_RESOURCES[owner.kind], manager=CLI_MANAGER)
            key = Key("", f"{operated.project}-p", owner.kind)
        else:
            metadata = msgspec.structs.replace(owner.metadata, namespace=operated.project)
            owner = msgspec.structs.replace(owner, metadata=metadata)
            await operated.workloads.write(owner, manager=CLI_MANAGER)
            key = Key(operated.project, owner.metadata.name)
        await operated.activity.wait_for(lambda: bool(operated.manager.cache.owners(key)))
        await operated.wait_settled()
        (stored,) = operated.manager.cache.owners(key)
        snapshot = operated.manager.cache.snapshot(stored, TEST_CLUSTER)
        planned = PLANNERS[owner.kind](snapshot)
        assert planned.wanted
        for native in planned.wanted:
            found = await immutable_pointers(operated, native)
            named = IMMUTABLE.get(native["kind"], set())
            assert {each for each in found if not is_below(each, named)} == set(), object_label(native)
