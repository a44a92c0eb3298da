"""Whether the workloads that a workload calls admit it.

It is asked only by `pin why`: a callee belongs to another owner, and its changes must not reconcile all of its callers.
"""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.mtls import parse_callers
from pincompute.api.serverset import ServersetKey
from pincompute.api.service import PinterestService
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.status import READY, find_condition
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CALL_REFUSED, CALLEE_UNREACHABLE, MTLS_NOT_SERVED


class Callee(NamedTuple):
    """A workload that is called; without a workload where none of that name can be called."""

    key: ServersetKey
    workload: PinterestService | PinterestStatefulSet | None = None


def call_problem(owner: Workload, callee: Callee) -> Problem | None:
    """Why calls of this callee fail; None if nothing is known that prevents them.

    A workload of another project that does not list the caller looks as if it did not exist.
    """
    caller = ServersetKey(owner.metadata.namespace, owner.metadata.name)
    where = Where(object=owner.metadata.key, field="spec.calls")
    found = callee.workload
    if found is None and callee.key.project == caller.project:
        what = f"there is no service or stateful set {callee.key}, which {owner.metadata.name} calls"
        return Problem(CALLEE_UNREACHABLE, what, where, next="pin list, and correct calls in the file")
    if found is None or caller not in parse_callers(found.spec.callers, callee.key.project):
        what = f"{caller.workload} is not among the callers of {callee.key}"
        next_ = f"owner of {callee.key.workload} adds callers: [{caller}], and: pin deploy FILE -p {callee.key.project}"
        return Problem(CALL_REFUSED, what, where, next=next_)
    ready = find_condition(found.status.conditions, READY)
    if ready and ready.reason == MTLS_NOT_SERVED.code:
        what = f"{callee.key} lists {caller.workload} among its callers, and has no proxy of mutual TLS"
        return Problem(MTLS_NOT_SERVED, what, where, ready.message, found.status.next)
    if not found.status.ready_replicas:
        what = f"{callee.key}, which {caller.workload} calls, has no ready replica"
        return Problem(CALLEE_UNREACHABLE, what, where, next=f"pin why {callee.key.workload} -p {callee.key.project}")
    return None
