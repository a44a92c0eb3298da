"""One pass: snapshot, plan, steps, report."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from pincompute.api.names import API_VERSION, OPERATOR
from pincompute.api.status import SUCCEEDED, Report
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NAME_TAKEN
from pincompute.controller.act import act
from pincompute.controller.loop import Key
from pincompute.controller.resources import NOUNS
from pincompute.controller.view import View
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.content import Object
from pincompute.planning.diff import Difference, diff
from pincompute.planning.plan import Plan
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Cluster, Snapshot
from pincompute.planning.status import refused


class Reconciler:
    """Plans from scratch each time: a crash at any point equals a fresh start."""

    def __init__(self, client: Client, view: View, cluster: Cluster) -> None:
        self._client = client
        self._view = view
        self._cluster = cluster
        self._written: defaultdict[Key, dict[str, int]] = defaultdict(dict)
        """The revision of our last write of each kind of native: no pass is made on an older view."""

    async def __call__(self, key: Key) -> float | None:
        living = [each for each in self._view.owners(key) if not each.metadata.deletion_timestamp]
        if not living:
            # Kubernetes removes what it owned.
            self._written.pop(key, None)
            return None
        snapshot = self._view.snapshot(living[0], self._cluster)
        for later in living[1:]:
            await self._turn_away(snapshot._replace(owner=later), living[0])
        if not self._sees_own_writes(key):
            # The event that brings the view up to date will touch this key again.
            return None
        plan = PLANNERS[snapshot.owner.kind](snapshot)
        difference = diff(snapshot.owner.metadata.uid, snapshot.natives, plan)
        problems = list(difference.problems) + await self._act(key, snapshot, difference)
        await self._report(snapshot, plan, problems)
        if problems:
            raise Refused(*problems)
        return plan.wake_after

    async def _turn_away(self, snapshot: Snapshot, first: Workload) -> None:
        """A name is one workload's, over all kinds: who came later is told, and nothing is done for it."""
        metadata = snapshot.owner.metadata
        problem = Problem(
            NAME_TAKEN,
            f"{metadata.namespace} has a {first.kind} '{metadata.name}' already",
            Where(object=f"{metadata.namespace}/{metadata.name}"),
            next=f"kubectl delete {snapshot.owner.kind.lower()} {metadata.name}, and choose another name",
        )
        await self._report(snapshot, refused(snapshot, (problem,)), [])

    async def _act(self, key: Key, snapshot: Snapshot, difference: Difference) -> list[Problem]:
        """Every step is tried: one native that cannot be had does not keep the others away."""
        problems: list[Problem] = []
        # What has no namespace has one of its name.
        namespace = key.project or key.name
        for step in difference.steps:
            try:
                after = await act(self._client, namespace, step)
            except Refused as refused:
                problems += refused.problems
                continue
            if after is not None:
                self._written[key][after["kind"]] = int(after["metadata"]["resourceVersion"])
        return problems

    def _sees_own_writes(self, key: Key) -> bool:
        written = self._written.get(key, {})
        for kind in [kind for kind, revision in written.items() if self._view.includes(kind, revision)]:
            del written[kind]
        return not written

    async def _report(self, snapshot: Snapshot, plan: Plan, problems: list[Problem]) -> None:
        owner = snapshot.owner
        status = _blocked(plan.status, owner.GOAL, problems[0]) if problems else plan.status
        if status == owner.status:
            return
        report = {
            "apiVersion": API_VERSION,
            "kind": owner.kind,
            "metadata": {
                "name": owner.metadata.name,
                "namespace": owner.metadata.namespace,
                "uid": owner.metadata.uid,
            },
            "status": _spelled(status),
        }
        try:
            await self._client.apply(report, NOUNS[owner.kind], manager=OPERATOR, subresource="status")
        except NotFound:
            # Deleted in between: nobody is left to report to.
            return


def _spelled(status: Report) -> Object:
    """With its zeros where an object has nothing else: Kubernetes would make null of one that loses all its fields."""
    body: Object = msgspec.to_builtins(status)
    for field in msgspec.structs.fields(status):
        if body.get(field.encode_name) == {}:
            value = getattr(status, field.name)
            zeros = {each.encode_name: getattr(value, each.name) for each in msgspec.structs.fields(value)}
            body[field.encode_name] = zeros
    return body


def _blocked(status: Report, goal: str, problem: Problem) -> Report:
    """What stands in the way of writing is told before what is merely slow. Work that ends has not ended by that."""
    word = "Unknown" if goal == SUCCEEDED else "False"
    conditions = [
        msgspec.structs.replace(each, status=word, reason=problem.reason.code, message=problem.message())
        if each.type == goal
        else each
        for each in status.conditions
    ]
    return msgspec.structs.replace(status, next=problem.next, conditions=conditions)
