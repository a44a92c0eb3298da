"""What is wrong, as a value: it names the object, the number and the next thing to type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pincompute.base.reasons import INTERNAL, REASONS, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable


class Where(NamedTuple):
    """A place that a person can open: a file and line, a field of a document, an object of a cluster."""

    file: str = ""
    line: int = 0
    field: str = ""
    object: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return " ".join(part for part in (place, self.object, self.field) if part)


class Problem(NamedTuple):
    """One thing that is wrong. It is rendered for a terminal, for HTTP and for a status condition, here only."""

    reason: Reason
    what: str
    where: Where = Where()
    note: str = ""
    next: str = ""

    def text(self) -> str:
        place = f"{self.where}: " if str(self.where) else ""
        lines = [f"{place}{self.what}  [{self.reason.code}]"]
        lines += [f"  {line}" for line in self.note.splitlines()]
        if self.next:
            lines.append(f"  next: {self.next}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """One member of the `errors` of an RFC 9457 document."""
        whole = {
            "reason": self.reason.code,
            "detail": self.what,
            "where": {name: value for name, value in self.where._asdict().items() if value},
            "note": self.note,
            "next": self.next,
        }
        return {name: value for name, value in whole.items() if value}

    @classmethod
    def of(cls, said: dict[str, Any]) -> Problem:
        """From its JSON; a reason that is not known here is somebody's of another version."""
        where = said.get("where", {})
        return cls(
            REASONS.get(said["reason"], INTERNAL),
            said["detail"],
            Where(**{name: where[name] for name in Where._fields if name in where}),
            said.get("note", ""),
            said.get("next", ""),
        )

    def message(self) -> str:
        """What a status condition says beside the reason's code."""
        return f"{self.what}: {self.note}" if self.note else self.what


class Refused(Exception):  # noqa: N818  (it reads as what happened: `raise Refused(problem)`)
    """Everything that is wrong, at once, thrown to the door that will show it."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.what for problem in problems))
        self.problems = problems

    def text(self) -> str:
        return "\n".join(problem.text() for problem in self.problems)

    def json(self) -> dict[str, Any]:
        """The whole RFC 9457 document; its status is that of the first problem's reason."""
        first = self.problems[0].reason
        return {
            "type": f"urn:pincompute:reason:{first.code}",
            "title": first.means,
            "status": first.http,
            "errors": [problem.json() for problem in self.problems],
        }


def refuse_if(problem: Problem | None) -> None:
    """Raise the one problem that there may be."""
    if problem:
        raise Refused(problem)


def refuse_all(problems: Iterable[Problem]) -> None:
    """Raise the problems together; go on when there are none."""
    found = tuple(problems)
    if found:
        raise Refused(*found)
