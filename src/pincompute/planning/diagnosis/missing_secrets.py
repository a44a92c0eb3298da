"""Pods that wait for their secrets: the part that delivers them ends once, with the reason as its last line."""

from __future__ import annotations

import re

from pincompute.base.problem import Problem
from pincompute.base.reasons import SECRET_NOT_GRANTED, SECRET_UNKNOWN, SECRETS_UNAVAILABLE
from pincompute.planning.pods.secrets import SECRETS_PART

_REASONS = {each.code: each for each in (SECRET_UNKNOWN, SECRET_NOT_GRANTED, SECRETS_UNAVAILABLE)}
_LINE = re.compile(
    r"(?P<code>[A-Za-z]{1,40}): (?P<what>.{1,500}?); since (?P<since>[-+:0-9TZ]{20,32})(?: next: (?P<next>.{1,300}))?"
)


def missing_secrets_problem(part: str, message: str) -> Problem | None:
    """The reason for which a pod has not all of its secrets; None if the container ended for another one."""
    found = (
        _LINE.fullmatch(message.strip().rpartition("\n")[2].strip())
        if part.rpartition("-")[0] == SECRETS_PART
        else None
    )
    if found is None or found["code"] not in _REASONS:
        return None
    note = f"a replica waits for it since {found['since']}, and starts as soon as it has it"
    return Problem(_REASONS[found["code"]], found["what"], note=note, next=found["next"] or "")
