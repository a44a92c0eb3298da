"""One pass: snapshot, plan, steps, report."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from pincompute.api.status import Report
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NAME_TAKEN
from pincompute.controller.act import act
from pincompute.controller.passes import Key, Made, Outcome
from pincompute.controller.report import blocked, report
from pincompute.controller.view import View
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Unreachable
from pincompute.objects.content import Object
from pincompute.planning.diff import Difference, diff
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Cluster, Snapshot
from pincompute.planning.status import refused
from pincompute.planning.steps import words

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
        self._written: defaultdict[Key, dict[str, int]] = defaultdict(dict)
        """The revision of our last write of each kind: no pass is made on an older view."""

    async def __call__(self, key: Key) -> Made:
        living = [each for each in self._view.owners(key) if not each.metadata.deletion_timestamp]
        if not living:
            # Kubernetes removes what it owned.
            self._written.pop(key, None)
            return Made(Outcome.GONE)
        if not self._sees_own_writes(key):
            return Made(Outcome.BEHIND, LOOK_AGAIN)
        try:
            return await self._make_so(key, self._view.snapshot(living[0], self._cluster), living[1:])
        except Conflict as error:
            return Made(Outcome.CONFLICT, why=error.message)

    async def _make_so(self, key: Key, snapshot: Snapshot, later: list[Workload]) -> Made:
        for each in later:
            await self._turn_away(key, snapshot._replace(owner=each), snapshot.owner)
        plan = PLANNERS[snapshot.owner.kind](snapshot)
        difference = diff(snapshot.owner.metadata.uid, snapshot.natives, plan)
        done = await self._act(key, difference)
        if done.overtaken:
            return Made(Outcome.CONFLICT, steps=done.steps, why=done.overtaken)
        problems = (*difference.problems, *done.problems)
        status = blocked(snapshot.owner, plan.status, problems[0]) if problems else plan.status
        wrote = await self._report(key, snapshot.owner, status)
        steps = (*done.steps, *wrote)
        if problems:
            return Made(Outcome.REFUSED, plan.wake_after, steps, Refused(*problems).text())
        outcome = Outcome.WROTE if steps else Outcome.SETTLED
        return Made(outcome, plan.wake_after, steps, plan.why.text() if plan.why else "")

    async def _turn_away(self, key: Key, snapshot: Snapshot, first: Workload) -> None:
        """A name is one workload's, over all kinds: who came later is told, and nothing is done for it."""
        metadata = snapshot.owner.metadata
        problem = Problem(
            NAME_TAKEN,
            f"{metadata.namespace} has a {first.kind} '{metadata.name}' already",
            Where(object=f"{metadata.namespace}/{metadata.name}"),
            next=f"kubectl delete {snapshot.owner.kind.lower()} {metadata.name}, and choose another name",
        )
        await self._report(key, snapshot.owner, refused(snapshot, (problem,)).status)

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
                problems += refused.problems
                if isinstance(refused, Unreachable):
                    # Nor would it answer the others, and each would wait as long.
                    break
                continue
            done.append(words(step))
            self._wrote(key, after)
        return _Done(tuple(done), tuple(problems))

    async def _report(self, key: Key, owner: Any, status: Report) -> tuple[str, ...]:
        """The one step that this is, if it is one."""
        if status == owner.status:
            return ()
        self._wrote(key, await report(self._client, owner, status))
        return (f"Report {owner.kind}/{owner.metadata.name}",)

    def _wrote(self, key: Key, after: Object | None) -> None:
        if after is not None:
            self._written[key][after["kind"]] = int(after["metadata"]["resourceVersion"])

    def _sees_own_writes(self, key: Key) -> bool:
        written = self._written.get(key, {})
        for kind in [kind for kind, revision in written.items() if self._view.includes(kind, revision)]:
            del written[kind]
        return not written
