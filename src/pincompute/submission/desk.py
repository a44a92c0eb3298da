"""The desk: a document comes in; it is refused with words, or it becomes a workload and is on record."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from pincompute.api.account import Account, Answer
from pincompute.api.admission import admit_all, admit_each, admit_workload
from pincompute.api.change import Change, Rollback
from pincompute.api.documents import Document, read, read_one
from pincompute.api.entering import Inside
from pincompute.api.glass import Glass, Wish
from pincompute.api.identity import Identity
from pincompute.api.noun import Noun
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.project import Project
from pincompute.api.provenance import ProvenanceAccount
from pincompute.api.summary import Summary
from pincompute.api.tenancy import OnItsWay, Tenancy, Tenant
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.base.ids import Ids
from pincompute.base.problem import Problem, Refused, refuse_if
from pincompute.controller.workloads import Workloads
from pincompute.planning.glass import behind, broken, needless, overdue, refusal, trace
from pincompute.planning.landing import claimed, closed, deployable, forged, only_landed, unvouched
from pincompute.planning.people.summary import summarize
from pincompute.planning.people.tenancy import Beside, tenancy, tenants
from pincompute.planning.quotas.allowance import Holdings, within
from pincompute.planning.quotas.footprint import Place
from pincompute.planning.rights import Verb
from pincompute.submission import ledger, outbox, record
from pincompute.submission.accept import foretold
from pincompute.submission.builds import Builds, vouched_for
from pincompute.submission.carrier import Carrier
from pincompute.submission.database import Connection, Database
from pincompute.submission.decide import Ask, Decider, Proposed, Sender
from pincompute.submission.platform import Away, Line, Rendered
from pincompute.submission.policies import Policies
from pincompute.submission.provenance import linked, traced
from pincompute.submission.record import BREAK_GLASS, DEPLOY, Kept, Submission
from pincompute.submission.rights import Rights
from pincompute.submission.sets import together, too_many

PATIENCE = 2.0
"""Seconds that an answer waits for the platform to have it; it is on record long before."""

KEPT = 4096
"""Characters of a document that cannot be read."""
TOLD = 100
"""Faults of one."""


class Desk:
    """What can be asked of it."""

    def __init__(  # noqa: PLR0913  (those it works with)
        self,
        database: Database,
        carrier: Carrier,
        workloads: Workloads,
        builds: Builds,
        *,
        clock: Clock,
        ids: Ids,
        policies: Policies,
    ) -> None:
        self.workloads = workloads
        self.builds = builds
        self.rights = Rights(carrier.platform)
        self._policies = policies
        self._decider = Decider(database, carrier, self.rights, policies)
        self.patience = PATIENCE
        self._database = database
        self._platform = carrier.platform
        self.clock = clock
        self._ids = ids

    async def ready(self) -> None:
        """Return once it knows what it decides by."""
        await self._platform.seen()

    async def submit(self, text: str, project: str, sender: Sender, wish: Wish | None = None) -> Kept:
        """A document: what became of it."""
        try:
            document = read_one(text)
        except Refused as refused:
            return await self.unreadable(text, project, refused, sender)
        (kept,) = await self._submitted([document._replace(text=text)], text, project, sender, wish)
        return kept

    async def submit_set(self, text: str, project: str, sender: Sender, wish: Wish | None = None) -> list[Kept]:
        """Documents, of which all are taken or none: what became of each."""
        try:
            documents = read(text)
            refuse_if(too_many(len(documents)))
        except Refused as refused:
            return [await self.unreadable(text, project, refused, sender)]
        return await self._submitted(documents, text, project, sender, wish)

    async def _submitted(
        self, documents: Sequence[Document], text: str, project: str, sender: Sender, wish: Wish | None
    ) -> list[Kept]:
        try:
            glass = self._broken(wish, sender)
        except Refused as refused:
            return [await self.unreadable(text, project, refused, sender)]
        asks: list[Ask] = []
        for document, admitted in zip(documents, admit_each(documents, project, _claimable), strict=True):
            if isinstance(admitted, Refused):
                asks.append(self._unreadable(document.text, project, admitted, sender))
                continue
            submission = self._submission(Place.of(admitted), DEPLOY, document.text, sender)
            asks.append(Ask(_through(submission, wish, glass), partial(self._sent, admitted, glass)))
        kept = together([each.submission for each in asks], text)
        asks = [each._replace(submission=one) for each, one in zip(asks, kept, strict=True)]
        return await self._decider.decided(asks, sender, self.patience)

    async def deploy(self, project: str, name: str, version: str, sender: Sender, wish: Wish | None = None) -> Kept:
        """What was published: what became of it."""
        glass = self._broken(wish, sender)
        submission = self._submission(Place(project, "", name), DEPLOY, version, sender)._replace(about=name)
        propose = partial(self._published, project, name, version, glass)
        return await self._decided_one(Ask(_through(submission, wish, glass), propose), sender)

    async def unreadable(self, text: str, project: str, refused: Refused, sender: Sender) -> Kept:
        """What is no workload is on record, too: its beginning, and why it was refused."""
        return await self._decided_one(self._unreadable(text, project, refused, sender), sender)

    def _unreadable(self, text: str, project: str, refused: Refused, sender: Sender) -> Ask:
        whole = hashlib.sha256(text.encode()).hexdigest()
        submission = self._submission(Place(project, "", ""), DEPLOY, text[:KEPT].replace("\0", "?"), sender)
        submission = submission._replace(about=f"{whole} {refused.problems[0].what}")
        return Ask(submission, partial(_refused, Refused(*refused.problems[:TOLD])))

    async def change(self, project: str, name: str, change: Change, sender: Sender) -> Kept:
        """One thing of a workload that is there."""
        verb, said = type(change).__name__.lower(), msgspec.json.encode(change).decode()
        submission = self._submission(Place(project, "", name), verb, said, sender)
        return await self._decided_one(Ask(submission, partial(self._changed, project, name, change)), sender)

    async def delete(self, project: str, name: str, uid: str, sender: Sender) -> Kept:
        """With a uid, only that very one."""
        submission = self._submission(Place(project, "", name), "delete", uid, sender)
        return await self._decided_one(Ask(submission, partial(self._removed, project, name, uid)), sender)

    async def submission(self, project: str, id_: str) -> Kept:
        return await self._decider.submission(project, id_)

    async def project(self, name: str) -> Tenancy:
        """All that is known of it, what it holds by the ledger, and what is on its way there."""
        project, whole = await asyncio.gather(self._platform.project(name), self._platform.workloads(name))
        booked = partial(_booked, cluster=self._platform.name, project=name)
        held, on_their_way = await self._database.do(booked, long=True)
        return tenancy(name, project, whole, Beside(held, self._policies.platform, on_their_way), self.clock.now())

    async def all(self, project: str) -> list[Summary]:
        """Of every kind, in short."""
        return [summarize(each) for each in await self._platform.workloads(project)]

    async def projects(self, who: Identity) -> list[Tenant]:
        return tenants(await self._platform.projects(), who)

    async def account(self, project: str, name: str) -> Account:
        return await self.workloads.account(project, name, self.clock.now())

    async def why(self, project: str, name: str) -> Answer:
        return await self.workloads.why(project, name, self.clock.now())

    async def provenance(self, project: str, name: str) -> ProvenanceAccount:
        """From the commit to the copies, looked at now."""
        account = await self.account(project, name)
        last = await self._database.do(partial(record.deployed, project=project, name=name))
        return await traced(account, last, await self._platform.project(project), self.builds)

    @asynccontextmanager
    async def enter(self, project: str, name: str, inside: Inside, sender: Sender) -> AsyncGenerator[Line]:
        """A program in a copy. Of its words only the first is on record: what is typed may be a secret."""
        workload = await self._visited(project, name, f"ran {inside} in {inside.copy or 'a copy'}", sender)
        async with self.workloads.enter(workload, inside) as execution:
            yield execution

    @asynccontextmanager
    async def reach(self, project: str, name: str, copy: str, port: int, sender: Sender) -> AsyncGenerator[Line]:
        """A connection to a port of a copy."""
        workload = await self._visited(project, name, f"reached port {port} of {copy or 'a copy'}", sender)
        async with self.workloads.reach(workload, copy, port) as line:
            yield line

    async def _visited(self, project: str, name: str, words: str, sender: Sender) -> Workload:
        """What somebody goes into: on record before they do."""
        workload = await self.workloads.find(project, name)
        await self.rights.demand(sender.who, Verb.ENTER, project, workload.kind)
        place, at = Place.of(workload), self.clock.now()
        await self._database.do(
            partial(record.noted, at=at, who=str(sender.who), place=place, act="enter", words=words)
        )
        return workload

    async def plan(self, text: str, project: str, sender: Sender) -> list[Preview]:
        """What documents would become and change; nothing is written, not even the record."""
        nouns = admit_all(read(text), project)
        for noun in nouns:
            # It shows what is there already.
            if isinstance(noun, Workload | Project):
                await self.rights.demand(sender.who, Verb.LOOK, noun.metadata.namespace or noun.metadata.name)
            else:
                await self.rights.demand(sender.who, Verb.ADMINISTER)
        told = await self.workloads.preview(nouns, self.clock.now())
        planned = {each.metadata.name: each for each in nouns if isinstance(each, Project)}
        rendered = [await self._rendered(each, planned) for each in nouns]
        denied = [self._policies.denials(each, sender.who) if each else () for each in rendered]
        return await self._foretold(told, rendered, denied)

    async def _rendered(self, noun: Noun, planned: Mapping[str, Project]) -> Rendered | None:
        """Nothing where it is no workload, or its project is not there yet."""
        if not isinstance(noun, Workload):
            return None
        try:
            rendered = await self._platform.render(noun, None)
        except (Away, Refused):
            return None
        return rendered._replace(project=planned.get(rendered.place.project, rendered.project))

    async def _foretold(
        self,
        told: Sequence[Preview],
        rendered: Sequence[Rendered | None],
        problems: Sequence[Sequence[Problem]],
    ) -> list[Preview]:
        """With what each takes of its quota beside the others, and all that would keep it from being accepted."""
        fits = await self._database.do(partial(foretold, cluster=self._platform.name, rendered=rendered), long=True)
        return [within(preview, fit, found) for preview, fit, found in zip(told, fits, problems, strict=True)]

    async def plan_build(self, project: str, name: str, version: str, sender: Sender) -> BuildPreview:
        """What deploying it would do, and whether it may; asked as if it were done, and nothing is written."""
        build = await self.builds.find(project, name, version)
        workload = deployable(build)
        try:
            rendered = await self._platform.render(workload, None)
        except Away as away:
            raise Refused(away.problem) from away
        verdict = await self.builds.verdict(build, rendered.project)
        told = await self.workloads.preview([workload], self.clock.now())
        denied = self._policies.denials(rendered, sender.who, vouched_for(build, verdict))
        (preview,) = await self._foretold(told, [rendered], [[*verdict.problems(), *denied]])
        return BuildPreview(version, msgspec.structs.replace(preview, refused=[]), linked(verdict), preview.refused)

    def follow(self, project: str, name: str) -> AsyncGenerator[Summary]:
        return self.workloads.follow(project, name)

    def _submission(self, place: Place, verb: str, document: str, sender: Sender) -> Submission:
        id_, about = self._ids.new("submission"), "" if verb == DEPLOY else place.name
        return Submission(
            id_, self.clock.now(), str(sender.who), self._platform.name, place, verb, document, sender.key, about
        )

    def _broken(self, wish: Wish | None, sender: Sender) -> Glass | None:
        if wish is None:
            return None
        refuse_if(refusal(wish))
        return broken(wish, str(sender.who), self.clock.now())

    async def _sent(self, workload: Workload, glass: Glass | None, pending: Workload | None) -> Proposed:
        """A file, for which nobody vouches."""
        rendered = await self._platform.render(behind(workload, glass), pending)
        refuse_if((needless if glass else closed)(rendered.project, workload))
        return rendered, None

    async def _published(
        self, project: str, name: str, version: str, glass: Glass | None, pending: Workload | None
    ) -> Proposed:
        build = await self.builds.find(project, name, version)
        workload = deployable(build)
        rendered = await self._platform.render(behind(workload, glass), pending)
        refuse_if(needless(rendered.project, workload) if glass else None)
        return rendered, await self.builds.vouch(build, rendered.project, glass=glass is not None)

    async def _changed(self, project: str, name: str, change: Change, pending: Workload | None) -> Proposed:
        """What is there was vouched for when it came, or let in for a while."""
        rendered = await self._platform.amend(project, name, change, pending)
        if rendered.whole:
            refuse_if(overdue(rendered.whole, self.clock.now()))
            if isinstance(change, Rollback):
                await self._reviewed(rendered.whole, rendered.project)
        return rendered, None

    async def _reviewed(self, workload: Workload, project: Project | None) -> None:
        """Who goes back brings it in: the record says that this very content was, or it is looked at once more."""
        refuse_if(unvouched(project, workload))
        if not only_landed(project):
            return
        place, version = Place.of(workload), workload.spec.build
        if workload.spec.break_glass:
            let_in = await self._database.do(partial(record.let_in, project=place.project, name=place.name), long=True)
            refuse_if(forged(workload, let_in))
            return
        by = max(1, project.spec.landing.reviewers if project.spec.landing else 1)
        asked = partial(record.reviewed, project=place.project, name=place.name, version=version, by=by)
        if not (known := await self._database.do(asked, long=True)):
            build = await self.builds.find(place.project, place.name, version)
            await self.builds.vouch(build, project, glass=False)
            known = [deployable(build)]
        refuse_if(forged(workload, known))

    async def _removed(self, project: str, name: str, uid: str, pending: Workload | None) -> Proposed:
        return await self._platform.remove(project, name, uid, pending), None

    async def _decided_one(self, ask: Ask, sender: Sender) -> Kept:
        (kept,) = await self._decider.decided([ask], sender, self.patience)
        return kept


def _booked(connection: Connection, cluster: str, project: str) -> tuple[Mapping[str, Holdings], list[OnItsWay]]:
    """What it holds, by tier, and what is on its way to its cluster."""
    return ledger.by_tier(connection, cluster, project), outbox.open_of(connection, cluster, project)


async def _refused(refused: Refused, _: Workload | None) -> Proposed:
    """What cannot be read proposes nothing."""
    raise refused


def _claimable(document: Document, project: str) -> Workload:
    workload = admit_workload(document, project)
    refuse_if(claimed(workload))
    return workload


def _through(submission: Submission, wish: Wish | None, glass: Glass | None) -> Submission:
    """Whose glass is broken for it, if any is: so it stands in the record, and what is asked again is the same."""
    if wish is None or glass is None:
        return submission
    asked = f"{submission.about}\0{wish.seconds}\0{wish.because}"
    return submission._replace(verb=BREAK_GLASS, about=asked, because=trace(glass))
