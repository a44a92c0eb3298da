"""References to workloads as users type them: `hello`, or with a kind, `service/hello`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import KIND_UNKNOWN, WORKLOAD_UNKNOWN

if TYPE_CHECKING:
    from pincompute.api.workload import Workload
    from pincompute.platforms.access import WorkloadReader


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


async def fetch_workload(platform: WorkloadReader, project: str, ref: WorkloadRef) -> Workload:
    """Refuse a workload of another kind than the one that was typed."""
    workload = await platform.get_workload(project, ref.name)
    ref.require_kind(workload.kind)
    return workload


async def verify_kind(platform: WorkloadReader, project: str, ref: WorkloadRef) -> None:
    """The same for commands that do not need the workload. Asks the platform only if a kind was typed."""
    if ref.kind:
        await fetch_workload(platform, project, ref)


def parse_workload_ref(text: str) -> WorkloadRef:
    kind, slash, name = text.rpartition("/")
    return WorkloadRef(name, parse_kind(kind)) if slash else WorkloadRef(text)


def parse_replica_ref(text: str) -> tuple[WorkloadRef, str]:
    """Parse `web`, `web/REPLICA`, and both with a kind before them; the replica is empty if not given."""
    first, slash, rest = text.partition("/")
    if not slash:
        return WorkloadRef(text), ""
    kind = find_kind(first)
    name, _, replica = rest.partition("/") if kind else (first, slash, rest)
    return WorkloadRef(name, kind), replica


def join_kind_and_name(arguments: Sequence[str]) -> list[str]:
    """Accept `service web`, as kubectl does, as `service/web`."""
    if len(arguments) < 2 or arguments[1].startswith("-") or arguments[1].isdecimal():
        return list(arguments)
    kind, name, *others = arguments
    return [f"{kind}/{name}", *others] if "/" not in kind + name and find_kind(kind) else list(arguments)


def parse_kind(text: str) -> str:
    if kind := find_kind(text):
        return kind
    from pincompute.api.kinds import WORKLOADS

    known = ", ".join(short_kind(each) for each in WORKLOADS)
    note = f"the kinds are {known}\na replica, such as web/abcde, is selected by logs, shell, port-forward and why"
    raise Refused(Problem(KIND_UNKNOWN, f"no kind '{text}'", note=note))


def find_kind(text: str) -> str:
    """Accept a kind's full name, plural, kubectl short name, and the name without `Pinterest`; empty for others."""
    # Loads every kind, which most commands do not need.
    from pincompute.api.kinds import WORKLOADS

    spelling = text.lower().replace("-", "").replace("_", "")
    for name, kind in WORKLOADS.items():
        if spelling in {name.lower(), kind.plural(), short_kind(name), f"{short_kind(name)}s", *kind.SHORT_NAMES}:
            return name
    return ""


def short_kind(kind: str) -> str:
    """Return `jobset` for PinterestJobSet."""
    return kind.removeprefix("Pinterest").lower()
