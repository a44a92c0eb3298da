"""Faults of unchanged workloads: others use up the quota, take the name, or edit the Kubernetes objects."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from bench.fault_catalogue import SERVICE, TIMEOUT_S, Outcome, TargetCluster, apply_remedy
from pincompute.api.change import Scale
from pincompute.api.names import CLI_MANAGER
from pincompute.base.reasons import NOT_OWNED, QUOTA_USED_UP
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.resource import DEPLOYMENTS, EVENTS, SERVICES, Object, Resource

_CROWDED = "crowded"
_PODS = 3


async def quota_used_by_neighbour(cluster: TargetCluster) -> Outcome:
    """Another workload of the same project uses up the quota."""
    projects = CUSTOM_RESOURCES["Project"]
    spec = {"owner": "ann", "review": "open", "quota": {"on-demand": {"pods": _PODS}}}
    await cluster.client.apply({"metadata": {"name": _CROWDED}, "spec": spec}, projects, manager=CLI_MANAGER)
    await _wait_for_condition(cluster, projects, "", _CROWDED, "Ready")
    crowded = cluster._replace(project=_CROWDED)
    try:
        for name, replicas in (("mine", 1), ("greedy", _PODS - 1)):
            written = await crowded.write(name, **{**SERVICE, "replicas": replicas})
            await crowded.wait_for_diagnosis(name, written.generation, wrong=False)
        scaled = await crowded.change("mine", Scale(replicas=2))
        outcome = await apply_remedy(crowded, "mine", scaled.generation, {QUOTA_USED_UP.code})
        return outcome._replace(detected=outcome.detected and "pods used by greedy (2) and mine (1)" in outcome.details)
    finally:
        for name in ("mine", "greedy"):
            await crowded.workloads.delete(_CROWDED, name)
        await cluster.client.delete(projects, _CROWDED)


async def name_taken(cluster: TargetCluster) -> Outcome:
    """A Service of another owner has the name. Only its owner may delete it, so the platform does not."""
    body: Object = {"metadata": {"name": "taken", "namespace": cluster.project}, "spec": {"ports": [{"port": 80}]}}
    await cluster.client.create(SERVICES, body, manager="another-client")
    try:
        written = await cluster.write("taken", **SERVICE)
        return await apply_remedy(cluster, "taken", written.generation, {NOT_OWNED.code})
    finally:
        await cluster.workloads.delete(cluster.project, "taken")
        await cluster.client.delete(SERVICES, "taken", cluster.project)


async def edited_with_kubectl(cluster: TargetCluster) -> Outcome:
    """The operator reverts an edit at once. That is no problem, but the diagnosis notes who made the edit."""
    written = await cluster.write("touched", **SERVICE)
    await cluster.wait_for_diagnosis("touched", written.generation, wrong=False)
    more = {"spec": {"replicas": 5}}
    await cluster.client.patch(DEPLOYMENTS, "touched", cluster.project, more, style="merge", manager="kubectl-edit")
    async with asyncio.timeout(TIMEOUT_S), aclosing(cluster.client.watch(EVENTS, cluster.project)) as events:
        async for event in events:
            if event.object["reason"] == "DriftReverted" and event.object["regarding"].get("uid") == written.uid:
                break
    diagnosis = await cluster.why("touched")
    await cluster.workloads.delete(cluster.project, "touched")
    named = "spec.replicas was set to 5 instead of 1 by kubectl-edit" in diagnosis.note
    return Outcome(
        "edited-with-kubectl",
        diagnosis.reason,
        diagnosis.next,
        named and not diagnosis.is_problem,
        details=diagnosis.note,
    )


async def _wait_for_condition(
    cluster: TargetCluster, resource: Resource, namespace: str, name: str, condition: str
) -> None:
    watched = cluster.client.watch(resource, namespace, fields=f"metadata.name={name}")
    async with asyncio.timeout(TIMEOUT_S), aclosing(watched) as events:
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions", ())
            if any(each["type"] == condition and each["status"] == "True" for each in conditions):
                return
