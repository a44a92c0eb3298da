"""At what of a project somebody looks, and the table of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pincompute.api.summary import Summary, unknown_workload
from pincompute.base.problem import refuse_all
from pincompute.cli.table import table
from pincompute.cli.word import Word

COLUMNS = ("NAME", "KIND", "READY", "REASON", "ADDRESS")


class Looking(NamedTuple):
    """At what somebody looks, and how."""

    asked: tuple[Word, ...]
    kind: str
    wrong: bool
    output: str

    @property
    def alone(self) -> bool:
        """One workload is looked at closely."""
        return len(self.asked) == 1 and not self.output

    def wants(self, each: Summary) -> bool:
        named = not self.asked or each.name in {one.name for one in self.asked}
        return named and (not self.kind or each.kind == self.kind) and (not self.wrong or each.failed)

    def must_be_among(self, project: str, there: Mapping[str, Summary]) -> None:
        """All that is asked for by name, and of the kind that it was called."""
        missing = (each for each in self.asked if each.name not in there)
        refuse_all(unknown_workload(project, each.name, sorted(there)) for each in missing)
        for each in self.asked:
            each.must_be(there[each.name].kind)


def rows(workloads: Sequence[Summary], *, wide: bool, least: Sequence[int] = ()) -> str:
    """The table of them."""
    head = (*COLUMNS, "MESSAGE") if wide else COLUMNS
    return table([head, *(_row(each, wide=wide) for each in workloads)], left=len(head), least=least)


def _row(each: Summary, *, wide: bool) -> tuple[str, ...]:
    # Every kind of workload begins so, and a person has little room.
    kind = each.kind.removeprefix("Pinterest")
    row = (each.label, kind, f"{each.ready}/{each.wanted}", each.reason, each.address)
    return (*row, each.message) if wide else row
