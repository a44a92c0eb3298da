"""What is wrong, as a value: it names the object, the number and the next thing to type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pincompute.base.reasons import INTERNAL, REASONS, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WIDEST = 60
"""Letters of a part of a rule, before what it is stands no longer below that of the others."""


class Where(NamedTuple):
    """A place that a person can open: a file and line, a field of a document, an object of a cluster."""

    file: str = ""
    line: int = 0
    field: str = ""
    object: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return " ".join(part for part in (place, self.object, self.field) if part)


class Part(NamedTuple):
    """A part of a rule that was not kept, with what it is and what it is made of."""

    says: str
    is_: str = ""
    decided: bool = True
    """Were it otherwise, the whole could be."""
    parts: tuple[Part, ...] = ()

    def lines(self, indent: str = "") -> Iterator[tuple[str, str]]:
        """As a tree, what decided it marked; and what each part is."""
        yield f"{indent}{'✗' if self.decided else '·'} {self.says}", self.is_
        for each in self.parts:
            yield from each.lines(f"{indent}  ")

    def json(self) -> dict[str, Any]:
        whole = {"says": self.says, "is": self.is_, "parts": [each.json() for each in self.parts]}
        return {**{name: value for name, value in whole.items() if value}, "decided": self.decided}

    @classmethod
    def of(cls, said: dict[str, Any]) -> Part:
        return cls(said["says"], said.get("is", ""), said["decided"], tuple(map(cls.of, said.get("parts", ()))))


class Problem(NamedTuple):
    """One thing that is wrong. It is rendered for a terminal, for HTTP and for a status condition, here only."""

    reason: Reason
    what: str
    where: Where = Where()
    note: str = ""
    next: str = ""
    because: Part | None = None
    """Of a rule: which of its parts decided that."""

    def text(self) -> str:
        place = f"{self.where}: " if str(self.where) else ""
        lines = [f"{place}{self.what}  [{self.reason.code}]"]
        lines += [f"  {line}" for line in self.note.splitlines()]
        lines += [f"  {line}" for line in self._tree()]
        if self.next:
            lines.append(f"  next: {self.next}")
        return "\n".join(lines)

    def _tree(self) -> Iterator[str]:
        rows = tuple(self.because.lines()) if self.because else ()
        width = min(_WIDEST, max((len(part) for part, is_ in rows if is_), default=0))
        return (f"{part:{width}}  {is_}".rstrip() for part, is_ in rows)

    def json(self) -> dict[str, Any]:
        """One member of the `errors` of an RFC 9457 document."""
        whole = {
            "reason": self.reason.code,
            "detail": self.what,
            "where": {name: value for name, value in self.where._asdict().items() if value},
            "note": self.note,
            "next": self.next,
            "because": self.because.json() if self.because else {},
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
            Part.of(said["because"]) if "because" in said else None,
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
