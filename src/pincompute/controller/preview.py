"""What documents would do to a cluster: everything is read, and nothing written."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import CLUSTER_FACTS, PROJECT, SYSTEM, WORKLOAD
from pincompute.api.noun import Noun
from pincompute.api.preview import Preview
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, refuse_all
from pincompute.controller.resources import NATIVES, NOUNS, PROJECT_LABELS, PROJECT_NATIVES, PROJECTS, RUNTIMES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CONFIG_MAPS, PODS, Resource
from pincompute.objects.content import Object, identity
from pincompute.planning.preview import LAPTOP, Surroundings, first, foresee
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot


class _Seen(NamedTuple):
    """One noun as the cluster has it, and what it became there."""

    owner: Object | None = None
    natives: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()


async def previews(client: Client, nouns: Sequence[Noun], now: datetime) -> list[Preview]:
    """Of a set that is taken whole or not at all: the problems of all are told together."""
    cluster, there = await asyncio.gather(_cluster(client), _there(client))
    written = {(noun.kind, noun.metadata.name) for noun in nouns}
    others = [each for each in there if (each.kind, each.metadata.name) not in written]
    surroundings = Surroundings.of([*others, *nouns], cluster)
    seen = await asyncio.gather(*(_look(client, noun) for noun in nouns))
    told: list[Preview] = []
    problems: list[Problem] = []
    for noun, each in zip(nouns, seen, strict=True):
        live = {identity(native): native for native in each.natives}
        preview = foresee(_snapshot(noun, each, surroundings, now), live)
        told += preview.told
        problems += preview.problems
    refuse_all(problems)
    return told


def _snapshot(noun: Noun, seen: _Seen, surroundings: Surroundings, now: datetime) -> Snapshot:
    """As it will be when the document has been written: one generation on, if it says anything new."""
    owner: Any = first(noun)
    if seen.owner is not None:
        before = msgspec.convert(seen.owner, type(noun))
        changed = before.spec != noun.spec
        metadata = msgspec.structs.replace(before.metadata, generation=before.metadata.generation + changed)
        owner = msgspec.structs.replace(before, spec=noun.spec, metadata=metadata)
    return Snapshot(
        owner,
        tuple(msgspec.convert(native, Native) for native in seen.natives),
        tuple(msgspec.convert(pod, Pod) for pod in seen.pods),
        surroundings.cluster,
        now,
        surroundings.projects.get(noun.metadata.namespace),
        surroundings.runtimes,
    )


async def _look(client: Client, noun: Noun) -> _Seen:
    metadata = noun.metadata
    try:
        owner = await client.get(NOUNS[noun.kind], metadata.name, metadata.namespace)
    except NotFound:
        return _Seen()
    if isinstance(noun, Workload):
        natives = await _became(client, NATIVES.values(), metadata.namespace, f"{WORKLOAD}={metadata.name}")
        pods = await client.list(PODS, metadata.namespace, labels=f"{WORKLOAD}={metadata.name}")
        return _Seen(owner, natives, tuple(pods.items))
    if isinstance(noun, PROJECTS):
        labels = f"{PROJECT_LABELS},{PROJECT}={metadata.name}"
        return _Seen(owner, await _became(client, PROJECT_NATIVES.values(), metadata.name, labels))
    return _Seen(owner)


async def _became(client: Client, kinds: Collection[Resource], namespace: str, labels: str) -> tuple[Object, ...]:
    """The natives whole, side by side; items of a list do not say their kind."""
    listings = await asyncio.gather(*(client.list(each, namespace, labels=labels) for each in kinds))
    return tuple(
        {"apiVersion": resource.api_version, "kind": resource.kind, **item}
        for resource, listing in zip(kinds, listings, strict=True)
        for item in listing.items
    )


async def _there(client: Client) -> list[Noun]:
    """What other work stands on: projects, runtimes and their parts."""
    listings = await asyncio.gather(*(client.list(NOUNS[each.__name__], type=each) for each in (*PROJECTS, *RUNTIMES)))
    return [each for listing in listings for each in listing.items]


async def _cluster(client: Client) -> Cluster:
    """A cluster that does not say what it is, is taken for a laptop's."""
    try:
        facts = await client.get(CONFIG_MAPS, CLUSTER_FACTS, SYSTEM)
    except NotFound:
        return LAPTOP
    return Cluster.of(facts["data"])
