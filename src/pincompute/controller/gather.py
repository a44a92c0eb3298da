"""What nouns became, and what they are planned by, read from a cluster when somebody asks: nothing is watched."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.api.names import CLUSTER_FACTS, PROJECT, SYSTEM, WORKLOAD
from pincompute.api.noun import Noun
from pincompute.api.workload import Workload
from pincompute.base.reasons import QUOTA_USED_UP
from pincompute.controller.resources import (
    NATIVES,
    NEIGHBOURS,
    NOUNS,
    PROJECT_LABELS,
    PROJECT_NATIVES,
    PROJECTS,
    RUNTIMES,
)
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden, NotFound
from pincompute.kube.resource import CONFIG_MAPS, EVENTS, NODES, PODS, Resource
from pincompute.objects.content import Object
from pincompute.planning.people.events import Event
from pincompute.planning.people.preview import LAPTOP, Surroundings
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot
from pincompute.planning.why.evidence import NO_NUMBERS, NUMBERED, Numbers
from pincompute.planning.why.guests import Guest, Node
from pincompute.planning.why.room import MOST, Room, candidates


class Seen(NamedTuple):
    """One noun as the cluster has it, and what it became there."""

    owner: Object | None = None
    natives: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()

    def snapshot(self, owner: Noun, surroundings: Surroundings, now: datetime) -> Snapshot:
        return Snapshot(
            owner,
            tuple(msgspec.convert(native, Native) for native in self.natives),
            tuple(msgspec.convert(pod, Pod) for pod in self.pods),
            surroundings.cluster,
            now,
            surroundings.projects.get(owner.metadata.namespace),
            surroundings.runtimes,
        )


async def seen(client: Client, noun: Noun) -> Seen:
    metadata = noun.metadata
    try:
        owner = await client.get(NOUNS[noun.kind], metadata.name, metadata.namespace)
    except NotFound:
        return Seen()
    if isinstance(noun, Workload):
        labels = f"{WORKLOAD}={metadata.name}"
        natives, pods = await asyncio.gather(
            _became(client, NATIVES.values(), metadata.namespace, labels),
            client.list(PODS, metadata.namespace, labels=labels),
        )
        return Seen(owner, natives, tuple(pods.items))
    if isinstance(noun, PROJECTS):
        labels = f"{PROJECT_LABELS},{PROJECT}={metadata.name}"
        return Seen(owner, await _became(client, PROJECT_NATIVES.values(), metadata.name, labels))
    return Seen(owner)


async def records(client: Client, owner: Workload) -> list[Object]:
    """Of its revisions, with the files that they were configured by."""
    return (await client.list(CONFIG_MAPS, owner.metadata.namespace, labels=f"{WORKLOAD}={owner.metadata.name}")).items


async def events(client: Client, project: str) -> list[Event]:
    """Of the whole project: none says to which workload it belongs. Who may not read them goes without."""
    try:
        return (await client.list(EVENTS, project, type=Event)).items
    except Forbidden:
        return []


async def facts(client: Client) -> dict[str, str]:
    """What the cluster says of itself; nothing where it does not."""
    try:
        return dict((await client.get(CONFIG_MAPS, CLUSTER_FACTS, SYSTEM))["data"])
    except NotFound:
        return {}


async def numbers(client: Client, owner: Workload, reason: str) -> Numbers:
    """Who has how much, where that is what stands against it. Who may not read all of it goes without."""
    try:
        if reason == QUOTA_USED_UP.code:
            return Numbers(project=(await client.list(PODS, owner.metadata.namespace, type=Guest)).items)
        if reason in {each.code for each in NUMBERED}:
            return await _room(client, owner)
    except Forbidden:
        pass
    return NO_NUMBERS


async def _room(client: Client, owner: Workload) -> Numbers:
    """Of the nodes all, and of what runs on them only what stands on those that might have room."""
    labels = f"{WORKLOAD}={owner.metadata.name}"
    pods, nodes = await asyncio.gather(
        client.list(PODS, owner.metadata.namespace, labels=labels, fields="spec.nodeName=", type=Guest),
        client.list(NODES, type=Node),
    )
    waits = min((each for each in pods.items if each.there), key=lambda each: each.metadata.name, default=None)
    return Numbers(waits, await _counted(client, nodes.items, [waits])) if waits else NO_NUMBERS


async def room(client: Client, guests: Sequence[Guest]) -> Room:
    """For those that would come. Who may not look at nodes knows of none."""
    try:
        nodes = (await client.list(NODES, type=Node)).items
        return await _counted(client, nodes, guests)
    except Forbidden:
        return Room()


async def _counted(client: Client, nodes: Sequence[Node], guests: Sequence[Guest]) -> Room:
    names = {each.metadata.name for guest in guests for each in candidates(guest, nodes)[:MOST]}
    listings = await asyncio.gather(
        *(client.list(PODS, fields=f"spec.nodeName={each}", type=Guest) for each in sorted(names))
    )
    return Room(nodes, [pod for each in listings for pod in each.items])


def edited(resource: Object) -> datetime | None:
    """When somebody last wrote what is wanted of it, as its managers have it."""
    entries = resource.get("metadata", {}).get("managedFields", ())
    times = [each["time"] for each in entries if "time" in each and not each.get("subresource")]
    return max((datetime.fromisoformat(each) for each in times), default=None)


async def surroundings(client: Client, nouns: Sequence[Noun] = ()) -> Surroundings:
    """What work stands on, with what a set of nouns brings itself."""
    cluster, there = await asyncio.gather(cluster_facts(client), _there(client))
    brought = {(noun.kind, noun.metadata.name) for noun in nouns}
    others = [each for each in there if (each.kind, each.metadata.name) not in brought]
    return Surroundings.of([*others, *nouns], cluster)


async def _became(client: Client, kinds: Collection[Resource], namespace: str, labels: str) -> tuple[Object, ...]:
    """The natives whole, side by side; items of a list do not say their kind."""
    listings = await asyncio.gather(*(_items(client, each, namespace, labels) for each in kinds))
    return tuple(
        {"apiVersion": resource.api_version, "kind": resource.kind, **item}
        for resource, items in zip(kinds, listings, strict=True)
        for item in items
    )


async def _items(client: Client, resource: Resource, namespace: str, labels: str) -> list[Object]:
    try:
        return (await client.list(resource, namespace, labels=labels)).items
    except NotFound:
        if resource.kind not in NEIGHBOURS:
            raise
        return []


async def _there(client: Client) -> list[Noun]:
    """Projects, runtimes and their parts."""
    listings = await asyncio.gather(*(client.list(NOUNS[each.__name__], type=each) for each in (*PROJECTS, *RUNTIMES)))
    return [each for listing in listings for each in listing.items]


async def cluster_facts(client: Client) -> Cluster:
    """A cluster that does not say what it is, is taken for a laptop's."""
    told = await facts(client)
    return Cluster.of(told) if told else LAPTOP
