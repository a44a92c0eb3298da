"""The scheduler's words in plain ones: `0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had …`."""

from __future__ import annotations

import re
from typing import NamedTuple

from pincompute.planning.pods.pod import GPU
from pincompute.planning.why.words import listed

_COUNTS = re.compile(r"^0/(?P<nodes>\d+) nodes are available: (?P<said>.*)", re.DOTALL)
_AFTER = re.compile(r"\.?\s+(?:preemption: |no new claims to deallocate|not found$).*", re.DOTALL)
"""What it says of its attempt to end others, and what it repeats."""
_SEGMENT = re.compile(r"^(?P<count>\d+) (?P<said>.+)$", re.DOTALL)
_TAINT = re.compile(r"untolerated taint(?:\(s\))?(?: \{(?P<key>[^:}]*)(?:: ?(?P<value>[^}]*))?\})?")
_SHORT = re.compile(r"^Insufficient (?P<what>\S+)$")

_NODE = "node.kubernetes.io/"
_STATES = {
    "not-ready": "are not ready",
    "unreachable": "are not heard of",
    "unschedulable": "are being emptied",
    "memory-pressure": "are short of memory",
    "disk-pressure": "are short of disk",
    "pid-pressure": "are short of process numbers",
    "network-unavailable": "have no network yet",
}
"""What Kubernetes itself says of a node by a taint."""
_STORAGE = (
    ("PersistentVolume's node affinity", "cannot reach its volume"),
    ("no available volume zone", "cannot reach its volume"),
    ("non-existent pv(s)", "cannot reach its volume, which is gone"),
    ("ReadWriteOncePod", "cannot reach its volume, which another pod uses"),
    ("available persistent volumes to bind", "have no volume for its claim"),
    ("enough free storage", "have too little storage left"),
    ("max volume count", "hold as many volumes as they can"),
)
_OTHERWISE = (
    ("Too many pods", "hold as many pods as they can"),
    ("node affinity/selector", "lack the labels that it asks for"),
    ("scheduler-enforced node affinity", "lack the labels that it asks for"),
    ("requested node name", "are not the one that it names"),
    ("existing pods anti-affinity", "are kept by others for themselves"),
    ("pod anti-affinity", "run what it keeps away from"),
    ("pod affinity", "lack what it wants to be near"),
    ("topology spread", "would spread it unevenly"),
    ("free ports", "have its port taken"),
    ("were unschedulable", "are being emptied"),
    ("unknown conditions", "are not ready"),
)


class Against(NamedTuple):
    """What keeps some nodes from taking it."""

    count: int
    words: str
    """Said of several nodes."""
    short: str = ""
    """What they have too little of, such as cpu."""
    storage: bool = False

    def __str__(self) -> str:
        return _of_one(self.words) if self.count == 1 else self.words


class Verdict(NamedTuple):
    """Why none of the nodes takes it."""

    nodes: int
    against: tuple[Against, ...]

    def __str__(self) -> str:
        """A node may have several things against it; what all have in common is enough to know."""
        if self.nodes == 1:
            return f"the only node {listed(str(each) for each in self.against)}"
        everywhere = [str(each) for each in self.against if each.count == self.nodes]
        if everywhere:
            return f"all {self.nodes} nodes {listed(everywhere)}"
        return f"of {self.nodes} nodes, {listed(f'{each.count} {each}' for each in self.against)}"


def verdict(message: str) -> Verdict | None:
    """None where it says anything that has no plain word here."""
    found = _COUNTS.match(message)
    if not found:
        return None
    against = [_against(each) for each in essence(message).split(", ")]
    known = sorted((each for each in against if each is not None), key=lambda each: (-each.count, each.words))
    return Verdict(int(found["nodes"]), tuple(known)) if len(known) == len(against) else None


def essence(message: str) -> str:
    """Without the number of nodes before, and what follows from it after."""
    found = _COUNTS.match(message)
    return _AFTER.sub("", found["said"] if found else message).rstrip(".").strip()


def _against(segment: str) -> Against | None:
    found = _SEGMENT.match(segment)
    if not found:
        return None
    count, said = int(found["count"]), found["said"]
    if short := _SHORT.match(said):
        what = "gpus" if short["what"] == GPU else short["what"]
        return Against(count, f"have too {'few' if what == 'gpus' else 'little'} {what} left", what)
    if taint := _TAINT.search(said):
        return Against(count, _tainted(taint["key"] or "", taint["value"] or ""))
    if words := _plain(said, _STORAGE):
        return Against(count, words, storage=True)
    words = _plain(said, _OTHERWISE)
    return Against(count, words) if words else None


def _plain(said: str, table: tuple[tuple[str, str], ...]) -> str:
    return next((words for phrase, words in table if phrase in said), "")


def _tainted(key: str, value: str) -> str:
    """A newer scheduler does not say which taint it is."""
    if key.removeprefix(_NODE) in _STATES:
        return _STATES[key.removeprefix(_NODE)]
    taint = f" {key}={value}" if value else f" {key}" if key else ""
    return f"have a taint{taint} that it does not tolerate"


def _of_one(words: str) -> str:
    verb, _, rest = words.partition(" ")
    one = {"are": "is", "have": "has", "would": "would", "cannot": "cannot"}.get(verb, f"{verb}s")
    return f"{one} {rest}".replace("as they can", "as it can")
