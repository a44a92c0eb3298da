"""References to workloads as users type them: `hello`, or with a kind, `service/hello`."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import KIND_UNKNOWN, WORKLOAD_UNKNOWN


class WorkloadRef(NamedTuple):
    name: str
    kind: str = ""
    """Empty if not given."""

    def require_kind(self, kind: str) -> None:
        """Refuse a workload of this name that has another kind than the given one."""
        if self.kind and self.kind != kind:
            what = f"no {short_kind(self.kind)} '{self.name}'"
            next_ = f"did you mean {short_kind(kind)}/{self.name}?"
            raise Refused(Problem(WORKLOAD_UNKNOWN, what, note=f"'{self.name}' is a {short_kind(kind)}", next=next_))


def parse_workload_ref(text: str) -> WorkloadRef:
    kind, slash, name = text.rpartition("/")
    return WorkloadRef(name, parse_kind(kind)) if slash else WorkloadRef(text)


def parse_kind(text: str) -> str:
    """Accept a kind's full name, plural, kubectl short name, and the name without `Pinterest`."""
    # Loads every kind, which most commands do not need.
    from pincompute.api.kinds import WORKLOADS

    spelling = text.lower().replace("-", "").replace("_", "")
    for name, kind in WORKLOADS.items():
        if spelling in {name.lower(), kind.plural(), short_kind(name), f"{short_kind(name)}s", *kind.SHORT_NAMES}:
            return name
    known = ", ".join(short_kind(each) for each in WORKLOADS)
    raise Refused(Problem(KIND_UNKNOWN, f"no kind '{text}'", note=f"the kinds are {known}"))


def short_kind(kind: str) -> str:
    """Return `jobset` for PinterestJobSet."""
    return kind.removeprefix("Pinterest").lower()
