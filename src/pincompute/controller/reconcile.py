"""One pass: snapshot, plan, steps, report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from pincompute.api.status import Report
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NAME_TAKEN, PROJECT_ENDING, SPEC_UNREADABLE
from pincompute.controller import report
from pincompute.controller.act import act
from pincompute.controller.hands import Hands
from pincompute.controller.passes import Key, Made, Outcome
from pincompute.controller.resources import NOUNS
from pincompute.controller.tell import tell
from pincompute.controller.view import Spoiled, View
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Forbidden, Full, Unreachable
from pincompute.kube.resource import PODS
from pincompute.objects.content import Object, identity
from pincompute.planning.counts import may_wait
from pincompute.planning.diff import Difference, diff
from pincompute.planning.people.news import news, put_back
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Cluster, Snapshot
from pincompute.planning.status import refused
from pincompute.planning.steps import Adopt, Apply, Create, Delete, Renew, Step, words

LOOK_AGAIN = 1.0
"""Seconds: the event that brings the view up to date touches the key, unless what we wrote was gone before the view
began anew, and no event ever comes."""


class _Done(NamedTuple):
    """What came of the steps of one pass."""

    steps: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    overtaken: str = ""
    """Who wrote in between, in the cluster's words: what was planned is of no more use."""


class Reconciler:
    """Plans from scratch each time: a crash at any point equals a fresh start."""

    def __init__(self, client: Client, view: View, cluster: Cluster) -> None:
        self._client = client
        self._view = view
        self._cluster = cluster
        self._hands = Hands(client)
        self._written: defaultdict[Key, dict[str, int]] = defaultdict(dict)
        """The revision of our last write of each kind: no pass is made on an older view."""
        self._ended: defaultdict[Key, set[str]] = defaultdict(set)
        """Natives, by uid, that we told to go: what is gone has no revision that could be waited for."""
        self._told: dict[Key, float] = {}
        """When its status was last written."""
        self._gone: defaultdict[Key, set[str]] = defaultdict(set)
        """Owners, by uid, that the view still shows although they are not there any more."""

    async def __call__(self, key: Key) -> Made:
        spoiled = self._view.spoiled(key)
        owners = self._view.owners(key)
        living = [
            each
            for each in owners
            if not each.metadata.deletion_timestamp and each.metadata.uid not in self._gone.get(key, ())
        ]
        if not living and not spoiled:
            # Kubernetes removes what it owned.
            self._written.pop(key, None)
            self._ended.pop(key, None)
            self._told.pop(key, None)
            self._hands.forget(key)
            if not owners:
                self._gone.pop(key, None)
            return Made(Outcome.GONE)
        if not self._sees_own_writes(key):
            return Made(Outcome.BEHIND, LOOK_AGAIN)
        try:
            if spoiled:
                return await self._leave(key, spoiled)
            return await self._make_so(key, self._view.snapshot(living[0], self._cluster), living[1:])
        except Conflict as error:
            return Made(Outcome.CONFLICT, why=error.message)

    async def _make_so(self, key: Key, snapshot: Snapshot, others: list[Workload]) -> Made:
        for each in others:
            await self._turn_away(key, snapshot._replace(owner=each), snapshot.owner)
        plan = PLANNERS[snapshot.owner.kind](snapshot)
        difference = self._as_far_as_seen(snapshot, plan, diff(snapshot.owner.metadata.uid, snapshot.natives, plan))
        difference = difference._replace(steps=tuple(self._not_ended(key, snapshot, difference)))
        if _makes_again(snapshot.owner, difference) and not await self._is_there(snapshot.owner):
            self._gone[key].add(snapshot.owner.metadata.uid)
            return Made(Outcome.GONE)
        done = await self._act(key, difference)
        if not done.overtaken and not done.problems:
            done = await self._put_back(key, snapshot, plan, difference, done)
        if done.overtaken:
            return Made(Outcome.CONFLICT, steps=done.steps, why=done.overtaken)
        problems = (*difference.problems, *done.problems)
        status = report.blocked(snapshot.owner, plan.status, problems[0]) if problems else plan.status
        later = self._later(key, snapshot.owner.status, status)
        told = () if later else await self._report(key, snapshot.owner, status)
        steps, again = (*done.steps, *told), soonest(plan.wake_after, later)
        if problems:
            return Made(Outcome.REFUSED, again, steps, Refused(*problems).text())
        outcome = Outcome.WROTE if steps else Outcome.SETTLED
        return Made(outcome, again, steps, plan.why.text() if plan.why else "")

    def _as_far_as_seen(self, snapshot: Snapshot, plan: Plan, difference: Difference) -> Difference:
        """Nothing is done by half a view: what cannot be seen is told, and is left alone."""
        unseen = self._view.unseen
        if not unseen:
            return difference
        wanted = {native["kind"] for native in plan.wanted}
        if isinstance(snapshot.owner, Workload):
            wanted.add(PODS.kind)
        problems = tuple(problem for kind, problem in unseen.items() if kind in wanted)
        if PODS.kind in unseen:
            return Difference((), (*difference.problems, *problems))
        steps = tuple(each for each in difference.steps if _kind(each) not in unseen)
        return Difference(steps, (*difference.problems, *problems))

    async def _is_there(self, owner: Any) -> bool:
        """Asked of the cluster: what it became may have been seen to go before it was seen to go itself."""
        metadata = owner.metadata
        found = await self._client.list(NOUNS[owner.kind], metadata.namespace, fields=f"metadata.name={metadata.name}")
        return any(each["metadata"]["uid"] == metadata.uid for each in found.items)

    async def _turn_away(self, key: Key, snapshot: Snapshot, first: Workload) -> None:
        """A name is one workload's, over all kinds: who came later is told, and nothing is done for it."""
        metadata = snapshot.owner.metadata
        problem = Problem(
            NAME_TAKEN,
            f"{metadata.namespace} has a {first.kind} '{metadata.name}' already",
            Where(object=metadata.place),
            next=f"kubectl delete {snapshot.owner.kind.lower()} {metadata.name}, and choose another name",
        )
        await self._report(key, snapshot.owner, refused(snapshot, (problem,)).status)

    async def _leave(self, key: Key, spoiled: dict[str, Spoiled]) -> Made:
        """What nobody can read is left as it is, with all that it became."""
        problems = []
        for kind, each in list(spoiled.items()):
            problem = Problem(
                SPEC_UNREADABLE,
                f"{kind} {key.name} cannot be read: {each.why}",
                Where(object=str(key)),
                note="what runs goes on as it is",
                next="submit its file again",
            )
            problems.append(problem)
            generation = each.metadata.generation
            status = report.unreadable(kind, generation, each.status, problem, self._client.clock.now())
            if status != each.status:
                after = await report.write(self._client, kind, each.metadata, status)
                self._wrote(key, after)
                if after is None:
                    self._view.forget_spoiled(key, kind)
        return Made(Outcome.REFUSED, why=Refused(*problems).text())

    async def _act(self, key: Key, difference: Difference) -> _Done:
        """Every step is tried: one native that cannot be had does not keep the others away."""
        done: list[str] = []
        problems: list[Problem] = []
        # What has no namespace has one of its name.
        namespace = key.project or key.name
        for step in difference.steps:
            try:
                after = await act(self._client, namespace, step)
            except Conflict as error:
                return _Done(tuple(done), overtaken=error.message)
            except Refused as refused:
                if _ends(refused):
                    problems.append(Problem(PROJECT_ENDING, f"the namespace {namespace} is being removed"))
                    break
                problems += refused.problems
                if isinstance(refused, Unreachable | Full):
                    # Nor would it take the others, and each might wait as long.
                    break
                continue
            done.append(words(step))
            if isinstance(step, Delete):
                self._ended[key].add(step.uid)
            self._wrote(key, after)
            if after is not None and isinstance(step, Create | Apply | Adopt):
                self._hands.wrote(key, after)
        return _Done(tuple(done), tuple(problems))

    async def _put_back(self, key: Key, snapshot: Snapshot, plan: Plan, difference: Difference, done: _Done) -> _Done:
        """What somebody edited by hand is as before, and whose edit it was is told."""
        for suspect in self._hands.suspects(key, snapshot, plan.wanted, difference):
            try:
                found, edited, after = await self._hands.put_back(key, suspect)
            except Conflict as error:
                return done._replace(overtaken=error.message)
            except Refused as refused:
                return done._replace(problems=refused.problems)
            if edited:
                self._wrote(key, after)
                done = done._replace(steps=(*done.steps, f"PutBack {identity(suspect.wanted)}"))
                await tell(self._client, snapshot.owner, put_back(snapshot.owner, suspect.wanted, found, edited))
        return done

    def _later(self, key: Key, before: Report, after: Report) -> float | None:
        """Seconds after which it is told; nothing where that is now, or there is nothing to tell."""
        if key not in self._told:
            return None
        left = self._told[key] + may_wait(before, after) - self._client.clock.monotonic()
        return left if left > 0 else None

    async def _report(self, key: Key, owner: Any, status: Report) -> tuple[str, ...]:
        """The one step that this is, if it is one."""
        if status == owner.status:
            return ()
        # Before it is written: it is told once, however often the status could not be.
        for each in news(owner, status):
            await tell(self._client, owner, each)
        after = await report.report(self._client, owner, status)
        self._wrote(key, after)
        self._told[key] = self._client.clock.monotonic()
        # A server that has just begun does not know yet which kinds there are, and finds nothing of them.
        if after is None and not await self._is_there(owner):
            self._gone[key].add(owner.metadata.uid)
        return (f"Report {owner.kind}/{owner.metadata.name}",)

    def _not_ended(self, key: Key, snapshot: Snapshot, difference: Difference) -> Iterator[Step]:
        """Without what was told to go already, and is still to be seen."""
        if ended := self._ended.get(key):
            ended &= {each.metadata.uid for each in snapshot.natives}
        for each in difference.steps:
            if not (isinstance(each, Delete) and ended and each.uid in ended):
                yield each

    def _wrote(self, key: Key, after: Object | None) -> None:
        if after is not None:
            self._written[key][after["kind"]] = int(after["metadata"]["resourceVersion"])

    def _sees_own_writes(self, key: Key) -> bool:
        written = self._written.get(key, {})
        for kind in [kind for kind, revision in written.items() if self._view.includes(kind, revision)]:
            del written[kind]
        return not written


def _makes_again(owner: Any, difference: Difference) -> bool:
    """Something is missing although nothing else is wanted than when it was last looked at."""
    known = owner.status.observed_generation == owner.metadata.generation
    return known and any(isinstance(each, Create) for each in difference.steps)


def _kind(step: Step) -> str:
    match step:
        case Create(native) | Apply(native) | Adopt(native):
            return str(native["kind"])
        case Delete(kind) | Renew(kind):
            return kind
        case _:
            return PODS.kind


def _ends(refused: Refused) -> bool:
    """Nothing new may be made in what is being removed."""
    if not isinstance(refused, Forbidden):
        return False
    return any(each.get("reason") == "NamespaceTerminating" for each in refused.details.get("causes") or ())
