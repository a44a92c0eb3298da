"""Reads what a project holds without an owner or without a workload, with the rights of the caller's client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.project import Project
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.api.unowned import UnownedObjects
from pincompute.api.workload import Workload
from pincompute.controller.resources import CUSTOM_RESOURCES, WORKLOAD_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden, NotFound
from pincompute.kube.resource import PODS
from pincompute.planning.views.unowned import LabelledObject, find_unowned
from pincompute.platforms.kubernetes.cluster_reader import list_items


class _MetadataOnly(LenientStruct, frozen=True):
    metadata: Metadata


async def read_unowned(
    client: Client, project: str, list_workloads: Callable[[str], Awaitable[Sequence[Workload]]]
) -> UnownedObjects:
    """Reads the objects first: those of a workload that is created meanwhile would seem to have none."""
    objects = await _list_labelled_objects(client, project)
    return find_unowned(await _find_project(client, project), await list_workloads(project), objects)


async def _list_labelled_objects(client: Client, project: str) -> list[LabelledObject]:
    """Metadata of all natives and pods in a project that have the label of a workload."""
    kinds = (*WORKLOAD_NATIVES.values(), PODS)
    listings = await asyncio.gather(
        *(list_items(client, each, project, WORKLOAD_LABEL, _MetadataOnly) for each in kinds)
    )
    return [
        LabelledObject(resource.kind, item.metadata)
        for resource, items in zip(kinds, listings, strict=True)
        for item in items
    ]


async def _find_project(client: Client, name: str) -> Project | None:
    """None for a project that is only a namespace, and for callers who may not read projects."""
    try:
        return msgspec.convert(await client.get(CUSTOM_RESOURCES[Project.__name__], name), Project)
    except (NotFound, Forbidden):
        return None
