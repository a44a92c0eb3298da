"""Previews documents: plans them against the live cluster and asks the API server by dry run. Writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.preview import ObjectAction, Preview
from pincompute.api.workload import Workload
from pincompute.base.aio import beside_loop
from pincompute.base.problem import Problem, refuse_all
from pincompute.kube.client import Client
from pincompute.objects.content import object_label
from pincompute.planning.edits import preserve_edits
from pincompute.planning.expiry import check_expires_later
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.capacity_preview import describe_free_capacity, planned_pods
from pincompute.planning.views.plan_preview import PlanningInputs, as_first_generation, is_large, preview_plan
from pincompute.platforms.kubernetes.changes import manifest_of
from pincompute.platforms.kubernetes.cluster_reader import (
    LiveState,
    read_free_capacity,
    read_live_state,
    read_planning_context,
)
from pincompute.platforms.kubernetes.dry_run import DryRunner


async def preview_resources(
    client: Client, dry_runner: DryRunner, resources: Sequence[CustomResource], now: datetime
) -> list[Preview]:
    """Previews a set that is accepted as a whole or not at all; the problems of all documents are reported together."""
    inputs, states = await asyncio.gather(
        read_planning_context(client, resources),
        asyncio.gather(*(read_live_state(client, resource) for resource in resources)),
    )
    previews: list[Preview] = []
    problems: list[Problem] = []
    for resource, state in zip(resources, states, strict=True):
        live = {object_label(native): native for native in state.natives}
        snapshot = _snapshot_after_write(resource, state, inputs, now)
        # A set has hundreds of documents, and a large one of them takes long.
        await asyncio.sleep(0)
        planned = await beside_loop(partial(preview_plan, snapshot, live), large=is_large(resource))
        previews += planned.previews
        problems += planned.problems
        if isinstance(resource, Workload) and (problem := check_expires_later(resource, snapshot.owner, now)):
            problems.append(problem)
    refuse_all(problems)
    previews = await _add_free_capacity(client, previews)
    return list(
        await asyncio.gather(
            *(_add_dry_run_errors(dry_runner, *each) for each in zip(previews, resources, strict=True))
        )
    )


async def _add_dry_run_errors(dry_runner: DryRunner, preview: Preview, resource: CustomResource) -> Preview:
    """Adds what the API server would refuse: of the workload itself and of the natives that would be written."""
    if not isinstance(resource, Workload) or not preview.changes:
        return preview
    wanted = {each.native: each.action for each in preview.changes if each.action is not ObjectAction.DELETE}
    natives = [native for native in preview.natives if object_label(native) in wanted]
    existing = {native for native, action in wanted.items() if action is not ObjectAction.CREATE}
    problems = await dry_runner.check([manifest_of(resource), *natives], existing)
    return msgspec.structs.replace(preview, errors=[each.json() for each in problems])


async def _add_free_capacity(client: Client, previews: list[Preview]) -> list[Preview]:
    """Adds whether the new pods would find a node. The nodes are read once for all previews."""
    planned = [planned_pods(each.natives) if each.changes else [] for each in previews]
    if not any(planned):
        return previews
    capacity = await read_free_capacity(client, [pod.pod for pods in planned for pod in pods])
    return [
        msgspec.structs.replace(preview, free_capacity=list(describe_free_capacity(each, capacity)))
        for preview, each in zip(previews, planned, strict=True)
    ]


def _snapshot_after_write(
    resource: CustomResource, state: LiveState, inputs: PlanningInputs, now: datetime
) -> Snapshot:
    """The snapshot that the operator will plan from after the write: the next generation if the spec differs."""
    owner: Any = as_first_generation(resource)
    if state.owner is not None:
        before: Any = msgspec.convert(state.owner, type(resource))
        spec = preserve_edits(before, resource).spec if isinstance(resource, Workload) else resource.spec
        metadata = msgspec.structs.replace(
            before.metadata, generation=before.metadata.generation + (before.spec != spec)
        )
        owner = msgspec.structs.replace(before, spec=spec, metadata=metadata)
    return state.snapshot(owner, inputs, now)
