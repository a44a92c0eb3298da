"""Problems: errors as values that name the object, the number and the next command to type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pincompute.base.reasons import INTERNAL, Reason, find_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_EXPRESSION_COLUMN = 60
"""Width of the column of rule expressions; the value of a longer expression is not aligned."""


class Where(NamedTuple):
    """Location of a problem: a file and line, a field of a document, an object of a cluster."""

    file: str = ""
    line: int = 0
    field: str = ""
    object: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return " ".join(part for part in (place, self.object, self.field) if part)


class RulePart(NamedTuple):
    """A sub-expression of a violated policy rule, with its value and its own sub-expressions."""

    expression: str
    value: str = ""
    decided: bool = True
    """Another value of this part could change the result of the rule."""
    parts: tuple[RulePart, ...] = ()

    def lines(self, indent: str = "") -> Iterator[tuple[str, str]]:
        """Rows of an indented tree: the expression, marked if it was decisive, and its value."""
        yield f"{indent}{'✗' if self.decided else '·'} {self.expression}", self.value
        for part in self.parts:
            yield from part.lines(f"{indent}  ")

    def json(self) -> dict[str, Any]:
        whole = {"expression": self.expression, "value": self.value, "parts": [part.json() for part in self.parts]}
        return {**{name: value for name, value in whole.items() if value}, "decided": self.decided}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RulePart:
        # Version 0.1 recorded `says` and `is`; read until version 0.3.
        expression, value = data.get("expression", data.get("says", "")), data.get("value", data.get("is", ""))
        return cls(expression, value, data["decided"], tuple(map(cls.from_json, data.get("parts", ()))))


class Problem(NamedTuple):
    """One error. Rendered here for a terminal, for HTTP and for a status condition, and nowhere else."""

    reason: Reason
    what: str
    where: Where = Where()
    note: str = ""
    next: str = ""
    rule: RulePart | None = None
    """For a policy: the evaluated rule."""

    def text(self) -> str:
        place = f"{self.where}: " if str(self.where) else ""
        lines = [f"{place}{self.what}  [{self.reason.code}]"]
        lines += [f"  {line}" for line in self.note.splitlines()]
        lines += [f"  {line}" for line in self._tree()]
        if self.next:
            lines.append(f"  next: {self.next}")
        return "\n".join(lines)

    def _tree(self) -> Iterator[str]:
        rows = tuple(self.rule.lines()) if self.rule else ()
        width = min(_MAX_EXPRESSION_COLUMN, max((len(part) for part, is_ in rows if is_), default=0))
        return (f"{part:{width}}  {is_}".rstrip() for part, is_ in rows)

    def json(self) -> dict[str, Any]:
        """One member of the `errors` of an RFC 9457 document."""
        whole = {
            "reason": self.reason.code,
            "detail": self.what,
            "where": {name: value for name, value in self.where._asdict().items() if value},
            "note": self.note,
            "next": self.next,
            "rule": self.rule.json() if self.rule else {},
        }
        return {name: value for name, value in whole.items() if value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Problem:
        """Parse an error of a response. The reason is Internal if a newer version sent an unknown one."""
        where = data.get("where", {})
        rule = data.get("rule") or data.get("because")
        return cls(
            find_reason(data["reason"]) or INTERNAL,
            data["detail"],
            Where(**{name: where[name] for name in Where._fields if name in where}),
            data.get("note", ""),
            data.get("next", ""),
            RulePart.from_json(rule) if rule else None,
        )

    def message(self) -> str:
        """The message of a status condition."""
        return f"{self.what}: {self.note}" if self.note else self.what


class Refused(Exception):  # noqa: N818  (named for what happened, not for an error class)
    """Carries all problems of an operation to the command or HTTP handler that reports them."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.what for problem in problems))
        self.problems = problems

    def text(self) -> str:
        return "\n".join(problem.text() for problem in self.problems)

    def json(self) -> dict[str, Any]:
        """The RFC 9457 document. Its status is that of the first problem's reason."""
        first = self.problems[0].reason
        return {
            "type": f"urn:pincompute:reason:{first.code}",
            "title": first.meaning,
            "status": first.http_status,
            "errors": [problem.json() for problem in self.problems],
        }


def refuse_if(problem: Problem | None) -> None:
    """Raise Refused if there is a problem."""
    if problem:
        raise Refused(problem)


def refuse_all(problems: Iterable[Problem]) -> None:
    """Raise Refused with all problems, if there are any."""
    every = tuple(problems)
    if every:
        raise Refused(*every)
