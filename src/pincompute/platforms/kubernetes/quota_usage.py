"""Counts the quota usage of projects from the live cluster, for clients without a desk and its ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pincompute.admission.quota import QuotaHoldings, QuotaRequest, add_quota_to_preview, check_quota_together
from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import WORKLOADS
from pincompute.api.preview import Preview
from pincompute.api.workload import Workload
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.planning.edits import preserve_edits
from pincompute.planning.footprint import (
    Footprint,
    ObservedCounts,
    WorkloadKey,
    current_footprint,
    footprint_of,
    rollout_surge,
)
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import PlanningInputs, as_first_generation, converged_plan
from pincompute.platforms.kubernetes.cluster_reader import read_planning_context


async def list_workloads(client: Client, project: str) -> list[Workload]:
    """Workloads of every kind in a project, listed concurrently."""
    listings = await asyncio.gather(
        *(client.list(CUSTOM_RESOURCES[kind], project, type=type_) for kind, type_ in WORKLOADS.items())
    )
    return [each for listing in listings for each in listing.items]


def usage_by_tier(
    workloads: Iterable[Workload], inputs: PlanningInputs, now: datetime
) -> Mapping[str, Mapping[str, QuotaHoldings]]:
    """Footprints of all workloads, by project and tier."""
    usage: dict[str, dict[str, dict[tuple[str, str], Footprint]]] = {}
    for each in workloads:
        project, kind, name = WorkloadKey.of(each)
        footprint = current_footprint(_snapshot_without_natives(each, inputs, now))
        usage.setdefault(project, {}).setdefault(footprint.tier, {})[kind, name] = footprint
    return usage


async def add_quota_usage(
    client: Client, previews: Sequence[Preview], resources: Sequence[CustomResource], now: datetime
) -> list[Preview]:
    """Adds to each preview how much quota it would use, beside the other previews. Reserves nothing."""
    inputs = await read_planning_context(client, resources)
    namespaces = {each.metadata.namespace for each in resources if isinstance(each, Workload)}
    projects = sorted(namespaces & inputs.projects.keys())
    workloads = {
        WorkloadKey.of(each): each
        for listed in await asyncio.gather(*(list_workloads(client, project) for project in projects))
        for each in listed
    }
    requests = [
        _quota_request(each, workloads.get(WorkloadKey.of(each)), inputs, now) if isinstance(each, Workload) else None
        for each in resources
    ]
    results = check_quota_together(requests, usage_by_tier(workloads.values(), inputs, now))
    return [add_quota_to_preview(preview, result) for preview, result in zip(previews, results, strict=True)]


def _quota_request(workload: Workload, before: Workload | None, inputs: PlanningInputs, now: datetime) -> QuotaRequest:
    wanted = as_first_generation(preserve_edits(before, workload))
    plan = converged_plan(_snapshot_without_natives(wanted, inputs, now))
    footprint, project = footprint_of(plan, ObservedCounts.of(before or wanted)), workload.metadata.namespace
    return QuotaRequest(WorkloadKey.of(workload), inputs.projects.get(project), footprint, rollout_surge(plan))


def _snapshot_without_natives(workload: Workload, inputs: PlanningInputs, now: datetime) -> Snapshot:
    """A snapshot of a workload alone. Its footprint does not depend on the natives that exist."""
    project = inputs.projects.get(workload.metadata.namespace)
    return Snapshot(workload, (), (), inputs.cluster, now, project, inputs.runtimes, natives_known=False)
