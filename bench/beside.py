"""What befalls a workload that nobody has changed: others take its quota or its name, or edit its natives."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from bench.catalogue import PATIENCE, SERVICE, Place, Told, cured
from pincompute.api.change import Scale
from pincompute.api.names import HAND
from pincompute.base.reasons import NOT_OURS, QUOTA_USED_UP
from pincompute.controller.resources import NOUNS
from pincompute.kube.resource import DEPLOYMENTS, EVENTS, SERVICES, Object, Resource

_CROWDED = "crowded"
_PODS = 3


async def quota_eaten(place: Place) -> Told:
    """By another workload of the same project."""
    projects = NOUNS["Project"]
    spec = {"owner": "ann", "review": "open", "quota": {"on-demand": {"pods": _PODS}}}
    await place.client.apply({"metadata": {"name": _CROWDED}, "spec": spec}, projects, manager=HAND)
    await _until(place, projects, "", _CROWDED, "Ready")
    there = place._replace(project=_CROWDED)
    try:
        for name, copies in (("mine", 1), ("greedy", _PODS - 1)):
            written = await there.write(name, **{**SERVICE, "replicas": copies})
            await there.told(name, written.generation, wrong=False)
        scaled = await there.change("mine", Scale(copies=2))
        told = await cured(there, "mine", scaled.generation, {QUOTA_USED_UP.code})
        return told._replace(well=told.well and "pods used by greedy (2) and mine (1)" in told.words)
    finally:
        for name in ("mine", "greedy"):
            await there.workloads.delete(_CROWDED, name)
        await place.client.delete(projects, _CROWDED)


async def name_taken(place: Place) -> Told:
    """By somebody else's Service, which only whoever knows it may remove."""
    body: Object = {"metadata": {"name": "taken", "namespace": place.project}, "spec": {"ports": [{"port": 80}]}}
    await place.client.create(SERVICES, body, manager="somebody")
    try:
        written = await place.write("taken", **SERVICE)
        return await cured(place, "taken", written.generation, {NOT_OURS.code})
    finally:
        await place.workloads.delete(place.project, "taken")
        await place.client.delete(SERVICES, "taken", place.project)


async def edited_by_hand(place: Place) -> Told:
    """It is as before at once, and nothing is wrong; but whoever did it is told why it did not last."""
    written = await place.write("touched", **SERVICE)
    await place.told("touched", written.generation, wrong=False)
    more = {"spec": {"replicas": 5}}
    await place.client.patch(DEPLOYMENTS, "touched", place.project, more, style="merge", manager="kubectl-edit")
    async with asyncio.timeout(PATIENCE), aclosing(place.client.watch(EVENTS, place.project)) as events:
        async for event in events:
            if event.object["reason"] == "PutBack" and event.object["regarding"].get("uid") == written.uid:
                break
    answer = await place.why("touched")
    await place.workloads.delete(place.project, "touched")
    named = "spec.replicas was set to 5 instead of 1 by kubectl-edit" in answer.note
    return Told("edited-by-hand", answer.reason, answer.next, named and not answer.wrong, words=answer.note)


async def _until(place: Place, resource: Resource, namespace: str, name: str, condition: str) -> None:
    watched = place.client.watch(resource, namespace, fields=f"metadata.name={name}")
    async with asyncio.timeout(PATIENCE), aclosing(watched) as events:
        async for event in events:
            said = event.object.get("status", {}).get("conditions", ())
            if any(each["type"] == condition and each["status"] == "True" for each in said):
                return
