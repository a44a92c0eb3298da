"""Reads resources, their natives and the planning inputs from a cluster on request. Nothing is watched or cached."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, PROJECT_LABEL, SYSTEM_NAMESPACE, WORKLOAD_LABEL
from pincompute.api.workload import Workload
from pincompute.base.reasons import CLAIM_NOT_BOUND, QUOTA_USED_UP
from pincompute.controller.resources import (
    CUSTOM_RESOURCES,
    OPTIONAL_NATIVES,
    PROJECT_KINDS,
    PROJECT_NATIVE_SELECTOR,
    PROJECT_NATIVES,
    RUNTIME_KINDS,
    WORKLOAD_NATIVES,
)
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden, NotFound
from pincompute.kube.resource import (
    CONFIG_MAPS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Resource,
)
from pincompute.objects.content import Object
from pincompute.planning.diagnosis.capacity import Node, PodRequirements
from pincompute.planning.diagnosis.claims import Claim, StorageClass, StorageEvidence, Volume
from pincompute.planning.diagnosis.evidence import CAPACITY_REASONS, NO_EVIDENCE, NODE_REASONS, Evidence
from pincompute.planning.diagnosis.free_capacity import MAX_COUNTED_NODES, ClusterCapacity, counted_nodes
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from pincompute.planning.views.events import Event
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, PlanningInputs


class LiveState(NamedTuple):
    """A custom resource as the cluster has it, with its natives and pods. Empty if it does not exist."""

    owner: Object | None = None
    natives: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()

    def snapshot(self, owner: CustomResource, inputs: PlanningInputs, now: datetime) -> Snapshot:
        return Snapshot(
            owner,
            tuple(msgspec.convert(native, Native) for native in self.natives),
            tuple(msgspec.convert(pod, Pod) for pod in self.pods),
            inputs.cluster,
            now,
            inputs.projects.get(owner.metadata.namespace),
            inputs.runtimes,
        )


async def read_live_state(client: Client, resource: CustomResource) -> LiveState:
    metadata = resource.metadata
    try:
        owner = await client.get(CUSTOM_RESOURCES[resource.kind], metadata.name, metadata.namespace)
    except NotFound:
        return LiveState()
    if isinstance(resource, Workload):
        labels = f"{WORKLOAD_LABEL}={metadata.name}"
        natives, pods = await asyncio.gather(
            list_natives(client, WORKLOAD_NATIVES.values(), metadata.namespace, labels),
            client.list(PODS, metadata.namespace, labels=labels),
        )
        return LiveState(owner, natives, tuple(pods.items))
    if isinstance(resource, PROJECT_KINDS):
        labels = f"{PROJECT_NATIVE_SELECTOR},{PROJECT_LABEL}={metadata.name}"
        return LiveState(owner, await list_natives(client, PROJECT_NATIVES.values(), metadata.name, labels))
    return LiveState(owner)


async def list_revision_records(client: Client, owner: Workload) -> list[Object]:
    """The ConfigMaps of a workload: the records of its revisions, and the configuration files of each."""
    return (
        await client.list(CONFIG_MAPS, owner.metadata.namespace, labels=f"{WORKLOAD_LABEL}={owner.metadata.name}")
    ).items


async def list_events(client: Client, project: str) -> list[Event]:
    """Events of a whole project, as no event has the label of its workload. Empty if the caller may not read events."""
    try:
        return (await client.list(EVENTS, project, type=Event)).items
    except Forbidden:
        return []


async def read_cluster_facts(client: Client) -> dict[str, str]:
    """The data of the ConfigMap in which a cluster describes itself; empty if it has none."""
    try:
        return dict((await client.get(CONFIG_MAPS, CLUSTER_FACTS_CONFIGMAP, SYSTEM_NAMESPACE))["data"])
    except NotFound:
        return {}


async def read_evidence(client: Client, snapshot: Snapshot, pods: Sequence[Object], reason: str) -> Evidence:
    """What the cluster says about a cause that needs more. Empty for other causes, or if reading it is forbidden.

    `pods` are those of the workload in full.
    """
    owner: Workload = snapshot.owner
    try:
        if reason == QUOTA_USED_UP.code:
            of_project = await client.list(PODS, owner.metadata.namespace, type=PodRequirements)
            return Evidence(project_pods=of_project.items)
        if reason in {each.code for each in CAPACITY_REASONS}:
            return await _read_capacity(client, _first_unscheduled(pods))
        if reason == CLAIM_NOT_BOUND.code:
            return Evidence(storage=await _read_storage(client, owner, _first_unscheduled(pods)))
        if reason in {each.code for each in NODE_REASONS}:
            return Evidence(node=await _read_node(client, snapshot))
    except Forbidden:
        pass
    return NO_EVIDENCE


async def _read_capacity(client: Client, unscheduled: PodRequirements | None) -> Evidence:
    """All nodes, and the pods of those nodes alone that might fit the first unscheduled pod."""
    if unscheduled is None:
        return NO_EVIDENCE
    nodes = await client.list(NODES, type=Node)
    return Evidence(unscheduled, await _with_pods_on_candidates(client, nodes.items, [unscheduled]))


def _first_unscheduled(pods: Sequence[Object]) -> PodRequirements | None:
    waiting = [msgspec.convert(each, PodRequirements) for each in pods if not each.get("spec", {}).get("nodeName")]
    return min((each for each in waiting if each.is_active), key=lambda each: each.metadata.name, default=None)


async def _read_storage(client: Client, owner: Workload, pod: PodRequirements | None) -> StorageEvidence:
    """The claims of the first unscheduled pod, and all volumes, classes and nodes."""
    if pod is None:
        return StorageEvidence()
    claims, volumes, classes, nodes = await asyncio.gather(
        client.list(PERSISTENT_VOLUME_CLAIMS, owner.metadata.namespace, type=Claim),
        client.list(PERSISTENT_VOLUMES, type=Volume),
        client.list(STORAGE_CLASSES, type=StorageClass),
        client.list(NODES, type=Node),
    )
    return StorageEvidence(pod.claim_names, claims.items, volumes.items, classes.items, nodes.items)


async def _read_node(client: Client, snapshot: Snapshot) -> Node | None:
    """The node of the first pod that is not ready."""
    names = sorted(each.spec.node_name for each in snapshot.pods if each.spec.node_name and not each.ready)
    found = (await client.list(NODES, fields=f"metadata.name={names[0]}", type=Node)).items if names else []
    return found[0] if found else None


async def read_free_capacity(client: Client, pods: Sequence[PodRequirements]) -> ClusterCapacity:
    """Free capacity for pods that do not exist yet. Empty if the caller may not read nodes."""
    try:
        nodes = (await client.list(NODES, type=Node)).items
        return await _with_pods_on_candidates(client, nodes, pods)
    except Forbidden:
        return ClusterCapacity()


async def _with_pods_on_candidates(
    client: Client, nodes: Sequence[Node], pods: Sequence[PodRequirements]
) -> ClusterCapacity:
    """Lists pods per candidate node: listing all pods of a large cluster would take too long."""
    names = sorted({each.metadata.name for pod in pods for each in counted_nodes(pod, nodes)})
    if len(names) > 1 and len(nodes) <= MAX_COUNTED_NODES:
        # The pods of a small cluster are few: one request instead of one for each node.
        return ClusterCapacity(nodes, (await client.list(PODS, fields="spec.nodeName!=", type=PodRequirements)).items)
    listings = await asyncio.gather(
        *(client.list(PODS, fields=f"spec.nodeName={each}", type=PodRequirements) for each in names)
    )
    return ClusterCapacity(nodes, [each for listing in listings for each in listing.items])


def last_edit_time(resource: Object) -> datetime | None:
    """When the spec or the metadata was last written, according to managedFields."""
    entries = resource.get("metadata", {}).get("managedFields", ())
    times = [each["time"] for each in entries if "time" in each and not each.get("subresource")]
    return max((datetime.fromisoformat(each) for each in times), default=None)


async def read_planning_context(client: Client, submitted: Sequence[CustomResource] = ()) -> PlanningInputs:
    """Projects, runtimes and cluster facts; submitted resources take precedence over those of the cluster."""
    cluster, existing = await asyncio.gather(read_cluster(client), _list_projects_and_runtimes(client))
    replaced = {(each.kind, each.metadata.name) for each in submitted}
    others = [each for each in existing if (each.kind, each.metadata.name) not in replaced]
    return PlanningInputs.of([*others, *submitted], cluster)


async def list_natives(client: Client, kinds: Collection[Resource], namespace: str, labels: str) -> tuple[Object, ...]:
    """Natives of these kinds in full. Their kind is added, because the items of a list response lack it."""
    listings = await asyncio.gather(*(list_items(client, each, namespace, labels) for each in kinds))
    return tuple(
        {"apiVersion": resource.api_version, "kind": resource.kind, **item}
        for resource, items in zip(kinds, listings, strict=True)
        for item in items
    )


async def list_items(
    client: Client, resource: Resource, namespace: str, labels: str, type_: type[Any] | None = None
) -> list[Any]:
    """Items of one kind; none of an optional kind that the cluster does not serve."""
    try:
        return (await client.list(resource, namespace, labels=labels, type=type_)).items
    except NotFound:
        if resource.kind not in OPTIONAL_NATIVES:
            raise
        return []


async def _list_projects_and_runtimes(client: Client) -> list[CustomResource]:
    listings = await asyncio.gather(
        *(client.list(CUSTOM_RESOURCES[each.__name__], type=each) for each in (*PROJECT_KINDS, *RUNTIME_KINDS))
    )
    return [each for listing in listings for each in listing.items]


async def read_cluster(client: Client) -> Cluster:
    """Describes the cluster; one without the ConfigMap is taken for a local one."""
    facts = await read_cluster_facts(client)
    return Cluster.from_facts(facts) if facts else LOCAL_CLUSTER
