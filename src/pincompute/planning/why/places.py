"""A copy that no node takes: what is short, who keeps it away, or which claim it waits for."""

from __future__ import annotations

import re

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import CLAIM_NOT_BOUND, NO_NODE_MATCHES, UNSCHEDULABLE, Reason
from pincompute.planning.pods.pod import GPU
from pincompute.planning.why.cause import Cause, Copy, Rank, Seen, Wait, given
from pincompute.planning.why.scheduler import Verdict, essence, verdict
from pincompute.planning.why.words import beginning, listed

PATIENCE = 5.0
"""Seconds in which those that end may make room."""
HEARD = 10.0
"""Seconds in which a node should have taken up what is meant for it."""
_CLAIM = re.compile(r"persistentvolumeclaim(?: \"(?P<name>[^\"]+)\")?", re.IGNORECASE)


def look(copy: Copy) -> Seen:
    yield from _named(copy)
    for each in copy.pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable":
            age = copy.age(copy.since())
            if copy.since() and age < PATIENCE:
                yield Wait(PATIENCE - age)
            else:
                yield Cause(_told(copy, each.message), Rank.SLOW)


def _named(copy: Copy) -> Seen:
    """Where the file itself says which node, no scheduler is asked; and a node that is not there says nothing."""
    node = copy.owner.spec.template.get("spec", {}).get("nodeName")
    if not node or copy.pod.says("PodScheduled") or not copy.pod.lives:
        return
    age = copy.age(copy.since())
    if age < HEARD:
        yield Wait(HEARD - age)
        return
    what = f"the file names the node {node}, and that one does not take a {copy.owner.COPY[0]}"
    next_ = "take nodeName out of spec.template, or see which there are: kubectl get nodes"
    yield Cause(Problem(NO_NODE_MATCHES, what, copy.where, next=next_), Rank.SLOW)


def _told(copy: Copy, message: str) -> Problem:
    what = f"no node can take a {copy.owner.COPY[0]}"
    said = verdict(message)
    if said:
        asks = _asks(copy.owner, _short(said))
        reason, next_ = _mend(copy.owner, said, asks)
        note = f"{said}; a {copy.owner.COPY[0]} asks for {asks}" if asks else str(said)
        return Problem(reason, what, copy.where, note, next_)
    claim = _CLAIM.search(message)
    if claim:
        return _claim(copy, claim["name"] or "", message)
    return Problem(UNSCHEDULABLE, what, copy.where, beginning(message), "kubectl get nodes")


def _mend(owner: Workload, said: Verdict, asks: str) -> tuple[Reason, str]:
    """What is short can be asked for in smaller numbers; the rest is between the file and the nodes."""
    if any(each.storage for each in said.against):
        return CLAIM_NOT_BOUND, f"kubectl describe pvc -n {owner.metadata.namespace}"
    short = _short(said)
    if short:
        less = f"less than {asks}" if asks else f"less {listed(short)}"
        return UNSCHEDULABLE, f"ask for {less} in the file, or for more nodes: kubectl get nodes"
    if owner.spec.whole_node:
        return NO_NODE_MATCHES, "take wholeNode out of the file, or ask for more nodes"
    return NO_NODE_MATCHES, "kubectl describe nodes, or correct nodeSelector, affinity or tolerations in spec.template"


def _short(said: Verdict) -> list[str]:
    """What every node has too little of; where there is no such thing, what any has."""
    short = [each for each in said.against if each.short]
    everywhere = [each for each in short if each.count == said.nodes]
    return sorted(each.short for each in everywhere or short)


def _asks(owner: Workload, short: list[str]) -> str:
    """What the file says itself; a kind may ask otherwise for each role."""
    spec = owner.spec
    said = given(owner, owner.main).get("resources", {}).get("requests", {})
    own = {"cpu": spec.cpu, "memory": spec.memory, "gpus": spec.gpus}
    asked = [(own.get(each) or said.get(GPU if each == "gpus" else each), each) for each in short]
    known = [f"{amount} {name}" for amount, name in asked if amount]
    return listed(known) if known else ""


def _claim(copy: Copy, name: str, message: str) -> Problem:
    what = f"a {copy.owner.COPY[0]} waits for its storage: {f'the claim {name}' if name else 'a claim'} cannot be had"
    next_ = f"kubectl describe pvc {name} -n {copy.owner.metadata.namespace}".replace("  ", " ")
    return Problem(CLAIM_NOT_BOUND, what, copy.where, beginning(essence(message)), next_)
