"""Reads a workload in full: natives, pods with their use, events and revisions."""

from __future__ import annotations

import asyncio

import msgspec

from pincompute.api.workload import Workload
from pincompute.api.workload_detail import WorkloadDetail
from pincompute.kube.client import Client
from pincompute.planning.usage import UsagePod
from pincompute.planning.views.history import read_history
from pincompute.planning.views.plan_preview import PlanningInputs
from pincompute.planning.views.workload_detail import with_usage, workload_detail
from pincompute.platforms.kubernetes.cluster_reader import list_events, list_revision_records, read_live_state
from pincompute.platforms.kubernetes.usage import UsageReader


async def read_detail(client: Client, usage_reader: UsageReader, owner: Workload) -> WorkloadDetail:
    """The workload with everything that belongs to it."""
    state, events, records = await asyncio.gather(
        read_live_state(client, owner),
        list_events(client, owner.metadata.namespace),
        list_revision_records(client, owner),
    )
    pods = [msgspec.convert(each, UsagePod) for each in state.pods]
    stats = await usage_reader.stats_of_nodes(pods)
    # Nothing is planned here, so the planning inputs may be empty.
    snapshot = state.snapshot(owner, PlanningInputs(), client.clock.now())
    detail = workload_detail(snapshot, state.natives, events, read_history(owner, records))
    return with_usage(detail, pods, stats)
