"""Reads the workloads that a workload calls, for `pin why`."""

from __future__ import annotations

from pincompute.api.mtls import parse_calls
from pincompute.api.serverset import ServersetKey
from pincompute.api.service import PinterestService
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.planning.diagnosis.calls import Callee, call_problem

_KINDS = (PinterestService, PinterestStatefulSet)


async def find_call_problem(client: Client, owner: Workload) -> Problem | None:
    """The problem of the first callee that has one. Callees that the caller of this may not read are left out."""
    for call in parse_calls(owner.spec.calls, owner.metadata.namespace):
        try:
            callee = await _read_callee(client, call.callee)
        except Forbidden:
            continue
        if problem := call_problem(owner, callee):
            return problem
    return None


async def _read_callee(client: Client, key: ServersetKey) -> Callee:
    """A list rather than a get: the desk has no right to get workloads."""
    for kind in _KINDS:
        fields = f"metadata.name={key.workload}"
        found = await client.list(CUSTOM_RESOURCES[kind.__name__], key.project, fields=fields, type=kind)
        if found.items:
            return Callee(key, found.items[0])
    return Callee(key)
