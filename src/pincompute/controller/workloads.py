"""Workloads by name: what a desk, or a hand that has only a kubeconfig, can ask of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.api.account import Account, Answer, Changed
from pincompute.api.change import Break, Change
from pincompute.api.entering import Inside
from pincompute.api.kinds import WORKLOADS
from pincompute.api.logs import Mark, Said, Wanted
from pincompute.api.membership import Review
from pincompute.api.names import PROJECT, REVIEW, SUBMISSION
from pincompute.api.noun import Noun
from pincompute.api.preview import Preview
from pincompute.api.status import SUCCEEDED
from pincompute.api.summary import Sight, Summary, unknown_workload
from pincompute.api.tenancy import Tenancy, Tenant
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CHANGED_MEANWHILE, NO_LOGS, NOT_OPEN, PROJECT_UNKNOWN
from pincompute.controller.amend import ATTEMPTS, amend, foresee, resource_of
from pincompute.controller.count import counted, foretold, listed
from pincompute.controller.entering import entered, reached
from pincompute.controller.following import Following
from pincompute.controller.gather import edited, events, numbers, records, seen, surroundings
from pincompute.controller.lines import Lines, copies, pods_of
from pincompute.controller.log_store import LogStore
from pincompute.controller.own import own_birth
from pincompute.controller.preview import previews
from pincompute.controller.rehearse import Rehearsal
from pincompute.controller.resources import NOUNS
from pincompute.controller.turns import Asked, Whose, series_of
from pincompute.controller.watching import watching
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound
from pincompute.kube.execution import Execution
from pincompute.kube.forwarding import Forwarding
from pincompute.kube.resource import NAMESPACES, Resource
from pincompute.planning.people import answer as answers
from pincompute.planning.people.account import account
from pincompute.planning.people.edits import Edit, as_found, carried
from pincompute.planning.people.history import history
from pincompute.planning.people.preview import Surroundings
from pincompute.planning.people.summary import summarize
from pincompute.planning.people.tenancy import Beside, tenancy, tenants

KindOf = Callable[[str, str], str]
"""Of which kind a project's name was last seen to be; empty where nobody has seen it."""


class Workloads:
    """Everything it answers, it reads from the cluster."""

    def __init__(self, client: Client, log_store: LogStore | None = None, kind_of: KindOf = lambda *_: "") -> None:
        self._client = client
        self._kind_of = kind_of
        self._lines = Lines(client, log_store)
        self._rehearsal = Rehearsal(client)

    async def write(self, workload: Workload, *, manager: str) -> Summary:
        """Make it be so; what others have written into the resource stays."""
        return summarize(await self.put(workload, manager=manager))

    async def put(self, workload: Workload, *, manager: str, new: bool = False) -> Workload:
        """The same, and the whole of what was written; who knows that there is none yet says so, and none is read."""
        writing = _Writing(workload, NOUNS[workload.kind], manager)
        for _ in range(ATTEMPTS):
            try:
                return await self._make(writing) if new else await self._put(writing)
            except Conflict:
                # Somebody wrote in between, such as a status.
                new = False
        return await self._put(writing)

    async def rehearse(self, workload: Workload, *, manager: str) -> None:
        """What the server would say of it; nothing is written."""
        metadata = workload.metadata
        before = await self.named(workload.kind, metadata.namespace, metadata.name)
        wanted = resource_of(carried(before, workload))
        try:
            await self._client.apply(wanted, NOUNS[workload.kind], manager=manager, dry_run=True)
        except NotFound as error:
            raise await self._unknown_project(metadata.namespace) from error

    async def _put(self, writing: _Writing) -> Workload:
        workload, resource, manager = writing
        metadata = workload.metadata
        try:
            found = await self._client.get(resource, metadata.name, metadata.namespace)
        except NotFound:
            return await self._make(writing)
        before = msgspec.convert(found, type(workload))
        noted = metadata.annotations.get(SUBMISSION)
        if noted and before.metadata.annotations.get(SUBMISSION) == noted:
            # It was written already, and only the answer was lost.
            return before
        # What was edited since stays so, as far as the file does not speak of it.
        wanted = resource_of(carried(before, workload))
        wanted["metadata"]["uid"] = before.metadata.uid
        if as_found(before) and not as_found(workload):
            # Somebody else wrote it: what is not sent would stay.
            wanted["spec"]["rollout"] = {"paused": "", **wanted["spec"].get("rollout", {})}
        await own_birth(self._client, resource, found, manager=manager)
        return msgspec.convert(await self._client.apply(wanted, resource, manager=manager), type(workload))

    async def _make(self, writing: _Writing) -> Workload:
        """By POST, which an apply of the same costs twice, and which leaves alone what somebody else has made."""
        workload, resource, manager = writing
        metadata = workload.metadata
        try:
            return msgspec.convert(
                await self._client.create(resource, resource_of(workload), manager=manager), type(workload)
            )
        except NotFound as error:
            raise await self._unknown_project(metadata.namespace) from error
        except AlreadyExists as error:
            there = await self.named(workload.kind, metadata.namespace, metadata.name)
            if there and not (SUBMISSION in metadata.annotations and SUBMISSION in there.metadata.annotations):
                raise Refused(_made_by_another(workload)) from error
            # A desk made it: this one, whose answer was lost, or one that had the shift before.
            raise Conflict(409, "Conflict", "it was made in between", about=error.about) from error

    async def named(self, kind: str, project: str, name: str) -> Workload | None:
        """The one of this kind, if there is one."""
        try:
            found = await self._client.get(NOUNS[kind], name, project)
        except NotFound:
            return None
        return msgspec.convert(found, WORKLOADS[kind])

    async def preview(self, nouns: Sequence[Noun], now: datetime) -> list[Preview]:
        """What they would become and change."""
        return await previews(self._client, self._rehearsal, nouns, now)

    async def foretell(self, nouns: Sequence[Noun], now: datetime) -> list[Preview]:
        """The same, and what they take of quotas, counted by what is there: for whoever has no desk."""
        return await foretold(self._client, await self.preview(nouns, now), nouns, now)

    async def all(self, project: str) -> list[Summary]:
        """Of every kind, in short."""
        return [summarize(each) for each in await self.whole(project)]

    async def whole(self, project: str) -> list[Workload]:
        """Of every kind."""
        found = await listed(self._client, project)
        if not found:
            await self.must_exist(project)
        return found

    async def tenancy(self, project: str, now: datetime) -> Tenancy:
        """All that is known of a project, where only its cluster says what each workload holds."""
        whole, around = await asyncio.gather(self.whole(project), surroundings(self._client))
        held = {tier: holdings for (_, tier), holdings in counted(whole, around, now).items()}
        return tenancy(project, around.projects.get(project), whole, Beside(held), now)

    async def tenants(self) -> list[Tenant]:
        """Every project."""
        return tenants((await surroundings(self._client)).projects)

    async def amend(self, project: str, name: str, change: Change, *, manager: str, submission: str = "") -> Changed:
        """Scale, pause, roll back and so on: what is there, with one thing changed."""
        workload = await self.find(project, name)
        if isinstance(change, Break):
            await self._must_be_open(project)
        return await amend(self._client, workload, change, manager=manager, submission=submission)

    async def foresee(self, workload: Workload, change: Change) -> Edit:
        """What that would make of it; nothing is written."""
        if isinstance(change, Break):
            await self._must_be_open(workload.metadata.namespace)
        return await foresee(self._client, workload, change)

    async def account(self, project: str, name: str, now: datetime) -> Account:
        """All that is known of one workload."""
        owner = await self.find(project, name)
        seen_, told, past = await asyncio.gather(
            seen(self._client, owner), events(self._client, project), records(self._client, owner)
        )
        # How it is planned does not matter here: only what is there is told.
        return account(seen_.snapshot(owner, Surroundings(), now), seen_.natives, told, history(owner, past))

    async def why(self, project: str, name: str, now: datetime) -> Answer:
        """What keeps it from its goal, thought anew from what is there now."""
        owner = await self.find(project, name)
        try:
            seen_, told, around, past = await asyncio.gather(
                seen(self._client, owner),
                events(self._client, project),
                surroundings(self._client),
                records(self._client, owner),
            )
        except Forbidden:
            return answers.told(owner)
        snapshot = seen_.snapshot(owner, around, now)
        found = answers.answer(snapshot, told, edited(seen_.owner or {}), history(owner, past))
        numbers_ = await numbers(self._client, owner, found.reason)
        return answers.answer(snapshot, told, edited(seen_.owner or {}), history(owner, past), numbers_)

    async def get(self, project: str, name: str) -> Summary:
        return summarize(await self.find(project, name))

    async def find(self, project: str, name: str) -> Workload:
        """A name is one workload's, over all kinds; the eldest where somebody went past the desk."""
        kind = self._kind_of(project, name)
        if kind and (there := await self.named(kind, project, name)):
            return there
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
        changes = self._client.follow(NOUNS[last.kind], name, project, type=WORKLOADS[last.kind])
        async with aclosing(changes) as states:
            async for workload in states:
                summary = summarize(workload)
                if summary != last:
                    last = summary
                    yield summary

    async def watch(self, project: str) -> AsyncGenerator[Sight]:
        """All of a project now, and then each change."""
        async with aclosing(watching(self._client, project)) as sights:
            async for each in sights:
                if not each.now and not each.gone:
                    await self.must_exist(project)
                yield each

    async def logs(self, project: str, name: str, wanted: Wanted) -> AsyncGenerator[Said]:
        """The last lines of its copies; with `follow`, also those to come. What was deleted is told by the store."""
        (pods, (kept, unread)) = await asyncio.gather(
            pods_of(self._client, project, name), self._lines.kept(project, name)
        )
        workload = await self._printing(project, name, known=bool(kept))
        whose = Whose.of(name, workload)
        found = series_of(whose, pods, kept, wanted.container)
        chosen = self._lines.choose(project, found, whose, wanted)
        # Of one among several it is told whose lines these are.
        yield copies(found if wanted.only else chosen)
        for mark in _about(name, workload, unread, 0 if wanted.copy or wanted.only else len(found) - len(chosen)):
            yield mark
        now = int(self._client.clock.now().timestamp() * 1e9)
        said = await self._lines.told(project, whose, chosen, wanted)
        for _, each in said:
            yield each
        if wanted.follow and workload:
            copy = chosen[0].copy if wanted.only and chosen else wanted.copy
            following = Following(self._client, self._lines.store, Asked(project, whose, wanted.container, copy))
            following.had(chosen, said, wanted.since if wanted.tail else now)
            async with aclosing(following.run(self._over(workload))) as more:
                async for each in more:
                    yield each

    async def _printing(self, project: str, name: str, *, known: bool) -> Workload | None:
        """Nothing, where it was deleted and its lines are kept."""
        try:
            workload = await self.find(project, name)
        except Refused:
            if known:
                return None
            raise
        if workload.status.simulated:
            raise Refused(Problem(NO_LOGS, f"{project}/{name} is simulated: no program runs, so nothing is printed"))
        return workload

    async def _over(self, workload: Workload) -> None:
        """Return when it prints no more: it was deleted, or has come to its end."""
        async with aclosing(self.follow(workload.metadata.namespace, workload.metadata.name)) as summaries:
            async for summary in summaries:
                if workload.GOAL == SUCCEEDED and (summary.done or summary.failed):
                    return

    def enter(self, workload: Workload, inside: Inside) -> AbstractAsyncContextManager[Execution]:
        """Run a program in one of its copies, beside its own."""
        return entered(self._client, workload, inside)

    def reach(self, workload: Workload, copy: str, port: int) -> AbstractAsyncContextManager[Forwarding]:
        """One connection to a port of one of its copies."""
        return reached(self._client, workload, copy, port)

    async def delete(self, project: str, name: str, uid: str = "") -> None:
        """Its natives go with it: Kubernetes removes what it owned. Another of its name, made meanwhile, stays."""
        found = await self.find(project, name)
        try:
            await self._client.delete(NOUNS[found.kind], name, project, uid=uid or found.metadata.uid)
        except NotFound as error:
            raise await self._unknown(project, name) from error
        except Conflict as error:
            raise Refused(made_anew(project, name)) from error

    async def must_exist(self, project: str) -> None:
        try:
            await self._client.get(NAMESPACES, project)
        except NotFound as error:
            raise await self._unknown_project(project) from error

    async def _must_be_open(self, project: str) -> None:
        """What is broken on purpose is not what anybody has reviewed."""
        labels = (await self._client.get(NAMESPACES, project))["metadata"].get("labels", {})
        if labels.get(REVIEW) != Review.OPEN:
            what = f"only reviewed work runs in the project {project}: nothing of it is broken on purpose"
            raise Refused(Problem(NOT_OPEN, what, next="pin deploy FILE --project me, and break that"))

    async def _unknown(self, project: str, name: str) -> Refused:
        there = sorted(each.name for each in await self.all(project))
        return Refused(unknown_workload(project, name, there))

    async def _unknown_project(self, project: str) -> Refused:
        listing = await self._client.list(NAMESPACES, labels=PROJECT)
        lasting = [each["metadata"] for each in listing.items if "deletionTimestamp" not in each["metadata"]]
        there = ", ".join(each["name"] for each in lasting)
        return Refused(
            Problem(
                PROJECT_UNKNOWN,
                f"there is no project '{project}'",
                note=f"the projects are {there}" if there else "this cluster has none",
            )
        )


class _Writing(NamedTuple):
    """A workload is to be so."""

    workload: Workload
    resource: Resource
    manager: str


def _made_by_another(workload: Workload) -> Problem:
    name = workload.metadata.name
    what = f"somebody else made {name} just now, and it was left alone"
    next_ = f"pin show {name}, and to have it as your file says: deploy that once more"
    return Problem(CHANGED_MEANWHILE, what, Where(object=workload.metadata.place), next=next_)


def made_anew(project: str, name: str) -> Problem:
    what = f"{name} was deleted and made anew just now, and the new one was left alone"
    next_ = f"pin show {name}, and if it is to go: pin delete {name}"
    return Problem(CHANGED_MEANWHILE, what, Where(object=f"{project}/{name}"), next=next_)


def _about(name: str, workload: Workload | None, unread: str, more: int) -> Iterator[Mark]:
    if workload is None:
        yield Mark("", "", f"{name} was deleted; these are its last lines")
    if unread:
        yield Mark("", "", unread)
    if more > 0:
        yield Mark("", "", f"{more} more {'has' if more == 1 else 'have'} run: pin logs {name} --gone, or {name}/COPY")
