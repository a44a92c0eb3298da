"""A scripted kubelet: nodes that are ready, and pods on them in the state that a fault says.

kwok leaves these nodes alone, because they lack its annotation.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from bench.why.corpus import NodeState, PodState
from bench.why.objects import RESOURCES
from bench.why.pod_status import READY_STATE, pod_status
from pincompute.api.names import SIMULATED_LABEL, WORKLOAD_LABEL
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, NotFound
from pincompute.kube.resource import CORE_EVENTS, LEASES, NODES, PODS, Object
from pincompute.objects.quantity import parse_quantity

MANAGER = "scripted-kubelet"
SCRIPTED_LABEL = "scripted"
"""Label of the nodes that all faults share."""
FAULT_LABEL = "bench"
OS_LABEL = "kubernetes.io/os"
_SHARED_NODES = 3
_SYNC_S = 1.0
_RENEW_S = 5.0
_SIZE = {"cpu": "32", "memory": "128Gi", "pods": "500"}


class Key(NamedTuple):
    project: str
    workload: str


class PlayedState:
    """State of a workload's pods. It ends with every change of the pods, or as the state says."""

    def __init__(self, state: PodState, healthy: set[str]) -> None:
        self.state = state
        self.healthy = healthy
        """Digests of the pods' specs that are not affected."""
        self.broken: set[str] = set()
        """The first digest that is affected, and those that changed without ending the state."""


class ScriptedKubelet:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._scripts: dict[Key, PlayedState] = {}
        self._digests: dict[Key, set[str]] = {}
        self._written: dict[str, PodState] = {}
        self._nodes: set[str] = set()
        self._silent: set[str] = set()

    def play(self, key: Key, state: PodState, *, everywhere: bool) -> None:
        """Reports the state of pods that differ from those seen so far, or of all."""
        self._scripts[key] = PlayedState(state, set() if everywhere else set(self._digests.get(key, ())))

    def forget(self, key: Key) -> None:
        self._scripts.pop(key, None)
        self._digests.pop(key, None)

    async def run(self) -> None:
        for number in range(_SHARED_NODES):
            labels = {SCRIPTED_LABEL: "true", OS_LABEL: "linux", "topology.kubernetes.io/zone": f"zone-{number + 1}"}
            await self.add_node(f"scripted-{number + 1}", NodeState(labels=labels))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew_leases())
            while True:
                # Connections break while a part of the platform is stopped.
                with suppress(ApiError, TimeoutError, OSError):
                    await self._sync()
                await asyncio.sleep(_SYNC_S)

    async def _renew_leases(self) -> None:
        while True:
            with suppress(ApiError, TimeoutError):
                await asyncio.gather(*(self._renew(each) for each in self._nodes - self._silent))
            await asyncio.sleep(_RENEW_S)

    async def add_node(self, name: str, state: NodeState) -> None:
        simulated = {"key": SIMULATED_LABEL, "value": "true", "effect": "NoSchedule"}
        labels = {SIMULATED_LABEL: "true", "kubernetes.io/hostname": name, **state.labels}
        size = {**_SIZE, **state.capacity}
        node: Object = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [simulated, *state.taints], "unschedulable": state.unschedulable},
            "status": {"capacity": size, "allocatable": size},
        }
        await self._client.create(NODES, node, manager=MANAGER)
        self._nodes.add(name)
        await self._renew(name)
        await self._report(name, state)

    async def set_node(self, name: str, state: NodeState) -> None:
        """Changes a node. Of a kubelet that stops to report, the node controller finds out by the lease."""
        if state.ready == "Unknown":
            self._silent.add(name)
        else:
            await self._report(name, state)

    async def _report(self, name: str, state: NodeState) -> None:
        now = _text(datetime.now(UTC))
        reasons = {"True": "KubeletReady", "False": "KubeletNotReady", "Unknown": "NodeStatusUnknown"}
        found = [("Ready", state.ready, reasons[state.ready], state.message)]
        if state.pressure:
            found.append((state.pressure, "True", f"KubeletHas{state.pressure}", state.message))
        conditions = [
            {"type": type_, "status": status, "reason": reason, "message": message,
             "lastTransitionTime": now, "lastHeartbeatTime": now}
            for type_, status, reason, message in found
        ]  # fmt: skip
        if state.ready != "True":
            self._silent.add(name)
        status = {"status": {"conditions": conditions}}
        await self._client.patch(NODES, name, "", status, style="merge", manager=MANAGER, subresource="status")
        if state.unschedulable:
            cordon = {"spec": {"unschedulable": True}}
            await self._client.patch(NODES, name, "", cordon, style="merge", manager=MANAGER)

    async def remove_node(self, name: str) -> None:
        self._nodes.discard(name)
        for resource, namespace in ((NODES, ""), (LEASES, "kube-node-lease")):
            with suppress(NotFound):
                await self._client.delete(resource, name, namespace)

    async def close(self) -> None:
        """Deletes all nodes."""
        await asyncio.gather(*(self.remove_node(each) for each in tuple(self._nodes)))

    async def _renew(self, name: str) -> None:
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": f"{_text(datetime.now(UTC))[:-1]}.000000Z",
        }
        lease: Object = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": spec,
        }
        await self._client.apply(lease, LEASES, manager=MANAGER)

    async def _sync(self) -> None:
        listing = await self._client.list(PODS)
        on_nodes = [each for each in listing.items if each["spec"].get("nodeName") in self._nodes]
        await asyncio.gather(*(self._sync_pod(each) for each in on_nodes), return_exceptions=True)

    async def _sync_pod(self, pod: Object) -> None:
        metadata = pod["metadata"]
        if pod["spec"]["nodeName"] in self._silent:
            return
        if metadata.get("deletionTimestamp"):
            path = PODS.path(metadata["namespace"], metadata["name"])
            await self._client.raw("DELETE", path, query={"gracePeriodSeconds": "0"})
            return
        state = await self._state_of(pod)
        if state.silent or self._written.get(metadata["uid"]) == state:
            return
        self._written[metadata["uid"]] = state
        status = {"status": pod_status(pod, state, datetime.now(UTC))}
        await self._client.patch(
            PODS, metadata["name"], metadata["namespace"], status,
            style="merge", manager=MANAGER, subresource="status",
        )  # fmt: skip
        if state.event:
            await self._tell(pod, state)

    async def _state_of(self, pod: Object) -> PodState:
        metadata = pod["metadata"]
        key = Key(metadata["namespace"], metadata.get("labels", {}).get(WORKLOAD_LABEL, ""))
        digest = _digest(pod)
        self._digests.setdefault(key, set()).add(digest)
        script = self._scripts.get(key)
        if script is None or digest in script.healthy or not re.search(script.state.only, metadata["name"]):
            return READY_STATE
        if script.state.until:
            return READY_STATE if await self._exists(key.project, script.state.until) else script.state
        if script.state.needs_memory:
            return READY_STATE if _has_memory(pod, script.state.needs_memory) else script.state
        if not script.broken:
            script.broken.add(digest)
        return script.state if digest in script.broken else READY_STATE

    async def _exists(self, project: str, reference: str) -> bool:
        kind, _, name = reference.partition("/")
        with suppress(NotFound):
            await self._client.get(RESOURCES[kind], name, project)
            return True
        return False

    async def _tell(self, pod: Object, state: PodState) -> None:
        if (event := state.event) is None:
            return
        now, metadata = _text(datetime.now(UTC)), pod["metadata"]
        about = {"apiVersion": "v1", "kind": "Pod", **{each: metadata[each] for each in ("name", "namespace", "uid")}}
        body: Object = {
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": about,
            "reason": event.reason,
            "message": event.message,
            "type": event.type,
            "source": {"component": "kubelet"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 3,
        }
        await self._client.create(CORE_EVENTS, body, manager=MANAGER)


def _digest(pod: Object) -> str:
    spec = pod["spec"]
    fields = ("containers", "initContainers", "volumes")
    named = {each: spec.get(each) for each in fields}
    return json.dumps(named, sort_keys=True).replace(pod["metadata"]["name"], "")


def _has_memory(pod: Object, least: str) -> bool:
    limit = pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get("memory", "0")
    return parse_quantity(limit) >= parse_quantity(least)


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def nodes_of(name: str, states: list[NodeState]) -> Iterator[tuple[str, NodeState]]:
    """The nodes of one fault by their names."""
    for number, state in enumerate(states):
        labelled = msgspec.structs.replace(state, labels={FAULT_LABEL: name, **state.labels})
        yield f"{name}-node-{number}", labelled
