"""A copy that no node takes: what is short, who keeps it away, or which claim it waits for, in plain words."""

from __future__ import annotations

import re
from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import CLAIM_NOT_BOUND, NO_NODE_MATCHES, UNSCHEDULABLE, Reason
from pincompute.planning.pod import GPU
from pincompute.planning.why.cause import Cause, Copy, Rank, Seen, Wait, given
from pincompute.planning.why.words import beginning, listed

PATIENCE = 5.0
"""Seconds in which those that end may make room."""
_COUNTS = re.compile(r"^0/(?P<all>\d+) nodes are available: (?P<said>.*)", re.DOTALL)
_AFTER = re.compile(r"\.?\s+(?:preemption: |no new claims to deallocate).*", re.DOTALL)
"""What the scheduler says of its attempt to end others."""
_SEGMENT = re.compile(r"^(?P<count>\d+) (?P<said>.+)$", re.DOTALL)
_TAINT = re.compile(r"untolerated taint(?:\(s\))?(?: \{(?P<key>[^:}]*)(?:: ?(?P<value>[^}]*))?\})?")
_SHORT = re.compile(r"^Insufficient (?P<what>\S+)$")
_CLAIM = re.compile(r"persistentvolumeclaim \"(?P<name>[^\"]+)\"")
_VOLUMES = ("persistentvolume", "persistent volume", "pvc(s)", "volume", "free storage", "no available disk")
_UNREADY = "node.kubernetes.io/"

_PLAIN = (
    ("Too many pods", "hold as many pods as they can"),
    ("node affinity/selector", "do not have the labels that it asks for"),
    ("scheduler-enforced node affinity", "do not have the labels that it asks for"),
    ("requested node name", "are not the one that it names"),
    ("existing pods anti-affinity", "are kept by others for themselves"),
    ("pod anti-affinity", "run what it keeps away from"),
    ("pod affinity", "do not run what it wants to be near"),
    ("topology spread", "would spread it unevenly"),
    ("free ports", "have its port taken"),
    ("were unschedulable", "are being emptied and take nothing new"),
    ("unknown conditions", "are not ready"),
)
"""What the scheduler says, in our words."""


class Against(NamedTuple):
    """What keeps some nodes from taking it."""

    count: int
    words: str
    short: str = ""
    """What they have too little of, such as cpu."""


def look(copy: Copy) -> Seen:
    for each in copy.pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable":
            made = copy.since()
            if made and copy.age(made) < PATIENCE:
                yield Wait(PATIENCE - copy.age(made))
            else:
                yield Cause(_told(copy, each.message), Rank.SLOW)


def _told(copy: Copy, message: str) -> Problem:
    found = _COUNTS.match(message)
    said = _AFTER.sub("", found["said"] if found else message).rstrip(".").strip()
    if any(each in said.lower() for each in _VOLUMES):
        return _claim(copy, said)
    one = copy.owner.COPY[0]
    against = [_against(copy.owner, each) for each in said.split(", ")] if found else []
    known = [each for each in against if each is not None]
    if not found or len(known) < len(against):
        return Problem(UNSCHEDULABLE, f"no node can take a {one}", copy.where, beginning(message), "kubectl get nodes")
    known.sort(key=lambda each: (-each.count, each.words))
    note = _counted(int(found["all"]), known)
    reason, next_ = _mend(copy.owner, known)
    return Problem(reason, f"no node can take a {one}", copy.where, note, next_)


def _against(owner: Workload, segment: str) -> Against | None:
    """In plain words; None where the scheduler says what we do not know."""
    found = _SEGMENT.match(segment)
    if not found:
        return None
    count, said = int(found["count"]), found["said"]
    if short := _SHORT.match(said):
        what = "gpus" if short["what"] == GPU else short["what"]
        asked = _asked(owner, what)
        asks = f" (a {owner.COPY[0]} asks for {asked})" if asked else ""
        return Against(count, f"{_have(count)} too little {what} left{asks}", what)
    if taint := _TAINT.search(said):
        return Against(count, _tainted(count, taint["key"] or "", taint["value"] or ""))
    if owner.spec.whole_node and "pod anti-affinity" in said:
        return Against(count, f"{_are(count)} not free of other workloads")
    words = next((words for phrase, words in _PLAIN if phrase in said), None)
    return Against(count, _agreeing(count, words)) if words else None


def _tainted(count: int, key: str, value: str) -> str:
    if key.startswith(_UNREADY):
        return f"{_are(count)} {key.removeprefix(_UNREADY)}"
    taint = f" {key}={value}" if value else f" {key}" if key else ""
    return f"{_have(count)} a taint{taint} that it does not tolerate"


def _mend(owner: Workload, against: list[Against]) -> tuple[Reason, str]:
    """What is short can be asked for in smaller numbers; the rest is between the file and the nodes."""
    short = sorted({each.short for each in against} - {""})
    if short:
        asks = listed(f"{each} than {_asked(owner, each)}" if _asked(owner, each) else each for each in short)
        return UNSCHEDULABLE, f"ask for less {asks} in the file, or for more nodes: kubectl get nodes"
    if owner.spec.whole_node:
        return NO_NODE_MATCHES, "take wholeNode out of the file, or ask for more nodes"
    return NO_NODE_MATCHES, "correct nodeSelector, affinity or tolerations in spec.template, or: kubectl describe nodes"


def _asked(owner: Workload, what: str) -> str:
    """What the file says itself; a kind may ask otherwise for each role."""
    spec = owner.spec
    said = given(owner, owner.metadata.name).get("resources", {}).get("requests", {})
    own = {"cpu": spec.cpu, "memory": spec.memory, "gpus": spec.gpus}.get(what, "")
    return str(own or said.get(GPU if what == "gpus" else what, "") or "")


def _claim(copy: Copy, said: str) -> Problem:
    project = copy.owner.metadata.namespace
    named = _CLAIM.search(said)
    claim = f"the claim {named['name']}" if named else "a claim"
    what = f"a {copy.owner.COPY[0]} waits for its storage: {claim} cannot be had"
    next_ = f"kubectl describe pvc {named['name'] if named else ''}".rstrip()
    return Problem(CLAIM_NOT_BOUND, what, copy.where, beginning(said), f"{next_} -n {project}")


def _counted(nodes: int, against: list[Against]) -> str:
    """A node may have several things against it."""
    if nodes == 1:
        return f"the only node {listed(each.words for each in against)}"
    everywhere = [each.words for each in against if each.count == nodes]
    if everywhere:
        return f"all {nodes} nodes {listed(everywhere)}"
    return f"of {nodes} nodes, {listed(f'{each.count} {each.words}' for each in against)}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _agreeing(count: int, words: str) -> str:
    """The words are written of several nodes."""
    verb, _, rest = words.partition(" ")
    if count != 1:
        return words
    return f"{ {'are': 'is', 'have': 'has', 'do': 'does', 'would': 'would'}.get(verb, verb + 's') } {rest}"
