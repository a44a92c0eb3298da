"""Who uses what a quota allows. Read when a person asks, and never in the loop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from pincompute.api.names import TIER, WORKLOAD
from pincompute.planning.pods.pod import GPU
from pincompute.planning.why.guests import Guest, bare
from pincompute.planning.why.words import some

_COUNTED = {"cpu": "cpu", "memory": "memory", "gpus": GPU}


def told(note: str, tier: str, pods: Sequence[Guest]) -> str:
    """Of what is short, as the note says it, who has how much; nothing where nobody uses anything."""
    here = [each for each in pods if each.there and each.metadata.labels.get(TIER) == tier]
    short = [each for each in ("cpu", "memory", "gpus", "pods") if re.search(rf"\b{each}\b", note)]
    lines = [line for each in short if (line := _users(each, here))]
    return "; ".join(lines)


def _users(what: str, pods: Sequence[Guest]) -> str:
    used: dict[str, Fraction] = {}
    for each in pods:
        name = each.metadata.labels.get(WORKLOAD, f"pod {each.metadata.name}")
        used[name] = used.get(name, Fraction(0)) + (each.needs(_COUNTED[what]) if what in _COUNTED else 1)
    most = sorted((each for each in used if used[each]), key=lambda each: (-used[each], each))
    if not most:
        return ""
    return f"{what} used by {some([f'{each} ({bare(what, used[each])})' for each in most])}"
