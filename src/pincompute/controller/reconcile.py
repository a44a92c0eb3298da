"""One pass: snapshot, plan, steps, report."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from pincompute.api.names import API_VERSION, OPERATOR
from pincompute.api.service import PinterestService
from pincompute.api.workload import Status
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.controller.act import act
from pincompute.controller.loop import Key
from pincompute.controller.resources import WORKLOADS
from pincompute.controller.view import View
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.planning import service
from pincompute.planning.diff import Difference, diff
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Cluster, Snapshot

PLANNERS = {PinterestService.KIND: service.plan}
"""One planner a kind."""


class Reconciler:
    """Plans from scratch each time: a crash at any point equals a fresh start."""

    def __init__(self, client: Client, view: View, cluster: Cluster, clock: Clock) -> None:
        self._client = client
        self._view = view
        self._cluster = cluster
        self._clock = clock
        self._written: defaultdict[Key, dict[str, int]] = defaultdict(dict)
        """The revision of our last write of each kind of native: no pass is made on an older view."""

    async def __call__(self, key: Key) -> float | None:
        snapshot = self._view.snapshot(key, self._cluster, self._clock.now())
        if snapshot is None or snapshot.owner.metadata.deletion_timestamp:
            # Kubernetes removes what a workload owned.
            self._written.pop(key, None)
            return None
        if not self._sees_own_writes(key):
            # The event that brings the view up to date will touch this workload again.
            return None
        plan = PLANNERS[snapshot.owner.kind](snapshot)
        difference = diff(snapshot.owner.metadata.uid, snapshot.natives, plan.wanted)
        problems = list(difference.problems) + await self._act(key, snapshot, difference)
        await self._report(snapshot, plan, problems)
        if problems:
            raise Refused(*problems)
        return plan.wake_after

    async def _act(self, key: Key, snapshot: Snapshot, difference: Difference) -> list[Problem]:
        """Every step is tried: one native that cannot be had does not keep the others away."""
        problems: list[Problem] = []
        for step in difference.steps:
            try:
                after = await act(self._client, snapshot.owner.metadata.namespace, step)
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
        status = _blocked(plan.status, problems[0]) if problems else plan.status
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
            "status": msgspec.to_builtins(status),
        }
        try:
            await self._client.apply(report, WORKLOADS[owner.kind], manager=OPERATOR, subresource="status")
        except NotFound:
            # Deleted in between: nobody is left to report to.
            return


def _blocked(status: Status, problem: Problem) -> Status:
    """What stands in the way of writing is told before what is merely slow."""
    conditions = [
        msgspec.structs.replace(each, status="False", reason=problem.reason.code, message=problem.message())
        if each.type == "Available"
        else each
        for each in status.conditions
    ]
    return msgspec.structs.replace(status, next=problem.next, conditions=conditions)
