"""Workloads by name: what a desk, or a hand that has only a kubeconfig, can ask of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime

import msgspec

from pincompute.api.names import PROJECT, WORKLOAD
from pincompute.api.noun import Noun
from pincompute.api.preview import Preview
from pincompute.api.summary import Summary, summarize
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import KIND_NOT_SERVED, NO_LOGS, PROJECT_UNKNOWN, WORKLOAD_UNKNOWN
from pincompute.controller.preview import previews
from pincompute.controller.resources import NOUNS, WORKLOADS
from pincompute.kube.client import Client
from pincompute.kube.errors import Gone, NotFound
from pincompute.kube.resource import NAMESPACES, PODS
from pincompute.kube.watch import DELETED
from pincompute.objects.content import Object

REST = 0.2
MOST = 50
"""Pods whose lines are read at once: of a batch there may be thousands."""


class Workloads:
    """Everything it answers, it reads from the cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(self, workload: Workload, *, manager: str) -> Summary:
        """Make it be so; what others have written into the resource stays."""
        if workload.kind not in WORKLOADS:
            what, served = f"nobody here makes a {workload.kind} so", ", ".join(WORKLOADS)
            raise Refused(Problem(KIND_NOT_SERVED, what, note=f"this platform serves {served}"))
        metadata = workload.metadata
        resource: Object = {
            "apiVersion": workload.apiVersion,
            "kind": workload.kind,
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "labels": metadata.labels,
                "annotations": metadata.annotations,
            },
            "spec": msgspec.to_builtins(workload.spec),
        }
        try:
            written = await self._client.apply(resource, NOUNS[workload.kind], manager=manager)
        except NotFound as error:
            raise await self._unknown_project(metadata.namespace) from error
        return summarize(msgspec.convert(written, type(workload)))

    async def preview(self, nouns: Sequence[Noun], now: datetime) -> list[Preview]:
        """What they would become and change."""
        return await previews(self._client, nouns, now)

    async def all(self, project: str) -> list[Summary]:
        """Of every kind, asked for side by side."""
        listings = await asyncio.gather(
            *(self._client.list(NOUNS[kind], project, type=noun) for kind, noun in WORKLOADS.items())
        )
        found = [summarize(each) for listing in listings for each in listing.items]
        if not found:
            await self._must_exist(project)
        return found

    async def get(self, project: str, name: str) -> Summary:
        return summarize(await self._find(project, name))

    async def _find(self, project: str, name: str) -> Workload:
        """A name is one workload's, over all kinds; the eldest where somebody went past the desk."""
        fields = f"metadata.name={name}"
        listings = await asyncio.gather(
            *(self._client.list(NOUNS[kind], project, fields=fields, type=noun) for kind, noun in WORKLOADS.items())
        )
        found = [each for listing in listings for each in listing.items]
        if not found:
            raise await self._unknown(project, name)
        return min(found, key=lambda each: each.metadata.creation_timestamp)

    async def follow(self, project: str, name: str) -> AsyncGenerator[Summary]:
        """What is known now, and then each change, until the workload is gone."""
        last = await self.get(project, name)
        yield last
        while True:
            try:
                events = self._client.watch(
                    NOUNS[last.kind], project, fields=f"metadata.name={name}", type=WORKLOADS[last.kind]
                )
                async with aclosing(events):
                    async for event in events:
                        if event.type == DELETED:
                            return
                        summary = summarize(event.object)
                        if summary != last:
                            last = summary
                            yield summary
            except Gone:
                # The watch begins again with what is there.
                await asyncio.sleep(REST)

    async def logs(self, project: str, name: str, *, tail: int, follow: bool) -> AsyncGenerator[str]:
        """The lines of every copy's own program; each line names its pod where there are several."""
        workload = await self._find(project, name)
        if workload.status.simulated:
            raise Refused(Problem(NO_LOGS, f"{project}/{name} is simulated: no program runs, so nothing is printed"))
        pods = await self._client.list(PODS, project, labels=f"{WORKLOAD}={name}")
        ran = sorted((pod for pod in pods.items if _has_run(pod)), key=_interest)
        lines: asyncio.Queue[str | Refused | None] = asyncio.Queue(maxsize=1000)
        async with asyncio.TaskGroup() as readers:
            for pod in ran[:MOST]:
                copy = pod["metadata"]["name"]
                prefix = f"{copy.removeprefix(name + '-')} | " if len(ran) > 1 else ""
                program = _program(pod, workload.main)
                source = self._client.logs(project, copy, container=program, tail=tail, follow=follow)
                readers.create_task(_copy(source, prefix, lines))
            open_ = len(ran[:MOST])
            while open_:
                match await lines.get():
                    case None:
                        open_ -= 1
                    case str(line):
                        yield line
                    case Refused() as refused:
                        # One copy that cannot be read does not silence the others.
                        yield f"({refused.problems[0].what})"
        if len(ran) > MOST:
            yield f"({len(ran) - MOST} more have run: kubectl logs POD --namespace {project})"

    async def delete(self, project: str, name: str) -> None:
        """Its natives go with it: Kubernetes removes what it owned."""
        try:
            kind = (await self.get(project, name)).kind
            await self._client.delete(NOUNS[kind], name, project)
        except NotFound as error:
            raise await self._unknown(project, name) from error

    async def _must_exist(self, project: str) -> None:
        try:
            await self._client.get(NAMESPACES, project)
        except NotFound as error:
            raise await self._unknown_project(project) from error

    async def _unknown(self, project: str, name: str) -> Refused:
        there = [each.name for each in await self.all(project)]
        note = f"there are {', '.join(there)}" if there else "it has none"
        return Refused(
            Problem(WORKLOAD_UNKNOWN, f"project {project} has no workload '{name}'", Where(object=project), note)
        )

    async def _unknown_project(self, project: str) -> Refused:
        listing = await self._client.list(NAMESPACES, labels=PROJECT)
        there = ", ".join(each["metadata"]["name"] for each in listing.items)
        return Refused(
            Problem(
                PROJECT_UNKNOWN,
                f"there is no project '{project}'",
                note=f"the projects are {there}" if there else "this cluster has none",
            )
        )


def _interest(pod: Object) -> tuple[bool, str]:
    """What failed comes first."""
    return pod["status"].get("phase") != "Failed", pod["metadata"]["name"]


def _program(pod: Object, main: str) -> str:
    """The container of the workload's own, among those that stand beside it."""
    names: list[str] = [each["name"] for each in pod["spec"]["containers"]]
    return main if main in names else names[0]


def _has_run(pod: Object) -> bool:
    """A container that never was has printed nothing."""
    return any(each.get("containerID") for each in pod["status"].get("containerStatuses", ()))


async def _copy(source: AsyncGenerator[str], prefix: str, into: asyncio.Queue[str | Refused | None]) -> None:
    """Each line with its prefix, and at the end nothing."""
    try:
        async with aclosing(source):
            async for line in source:
                await into.put(prefix + line)
    except NotFound:
        # The pod ended since it was listed.
        pass
    except Refused as refused:
        await into.put(refused)
    finally:
        await into.put(None)
