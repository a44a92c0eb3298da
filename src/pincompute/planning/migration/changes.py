"""Noticeable changes of an import, each with a keyword by which a user accepts it.

Every difference is listed. Those that every workload of the platform has, such as a ServiceAccount of its own instead
of the namespace's default one, need no consent; all others do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CANNOT_IMPORT

ALL = "all"
_EXPECTED = re.compile(
    r"serviceAccountName: default -> |terminationGracePeriodSeconds: |rollout\.|history\.|schedulingGates: none"
    r"|securityContext\.fsGroupChangePolicy: none|labels of the "
    r"|(\S+ )?\S*securityContext\.(runAsNonRoot|seccompProfile|allowPrivilegeEscalation|capabilities)\b"
    r"|(enableServiceLinks|automountServiceAccountToken): "
    r"|container \S+\.(lifecycle|readinessProbe|env\.PORT): none -> "
)
"""Differences without consent, after the name of a role."""
_KEYWORDS = (
    ("memory-limit", r"\.resources\.limits\.memory: none -> "),
    ("requests", r"\.resources\.requests\.\S+: none -> "),
    ("shell", r"^program: "),
    ("deadline", r"^deadline: "),
    ("labels", r"^(labels|annotations)\."),
    ("service-account", r"^serviceAccountName: "),
    ("restart-policy", r"^restartPolicy: "),
    ("volume-group", r"^securityContext\.fsGroup"),
    ("priority", r"^priorityClassName: "),
    ("placement", r"^(affinity|tolerations|nodeSelector)\b"),
    ("retries", r"^(job\.)?(retries|runPolicy\.backoffLimit): |podFailurePolicy"),
    ("retention", r"ttlSecondsAfterFinished: "),
    ("service", r"^(Service/|serviceName: )"),
    ("claims", r"^(claims|volumes|container \S+\.volumeMounts)\b"),
    ("budget", r"^budget\b"),
    ("probes", r"Probe\b"),
    ("variables", r"\.env\b"),
)
"""Keyword of a difference by a pattern; `other` if none matches."""
_ROLE = re.compile(r"^(Master|Worker|Chief|PS|Evaluator)\.")
_MAX_LISTED = 20


class Change(NamedTuple):
    """A difference that needs consent."""

    keyword: str
    text: str


def noticeable_changes(differences: Iterable[str]) -> tuple[Change, ...]:
    return tuple(Change(_keyword(each), each) for each in differences if not _EXPECTED.match(_without_role(each)))


def unaccepted_problems(changes: Iterable[Change], accepted: frozenset[str], name: str) -> Iterator[Problem]:
    """The problem of changes without consent; none if all are accepted."""
    left = [each for each in changes if accepted.isdisjoint({ALL, each.keyword})]
    if left:
        keywords = sorted({*(each.keyword for each in left), *accepted})
        lines = [f"{each.keyword}: {each.text}" for each in left[:_MAX_LISTED]]
        more = [f"and {len(left) - _MAX_LISTED} more"] if len(left) > _MAX_LISTED else []
        what = f"{len(left)} change{'s' if len(left) > 1 else ''} would be noticeable"
        next_ = f"--accept {','.join(keywords)}"
        yield Problem(CANNOT_IMPORT, what, Where(object=name), "\n".join((*lines, *more)), next_)


def known_keywords() -> tuple[str, ...]:
    return (*(keyword for keyword, _ in _KEYWORDS), "other", ALL)


def _keyword(difference: str) -> str:
    text = _without_role(difference)
    return next((keyword for keyword, pattern in _KEYWORDS if re.search(pattern, text)), "other")


def _without_role(difference: str) -> str:
    return _ROLE.sub("", difference)
