"""A rule that can be asked: read once, and then a question of microseconds. The one place that knows the library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pincompute.objects.cel.syntax import Each, Name, Node, NotRead, decode, every, parts
from pincompute.objects.cel.text import written

MAX_RULE = 2000
MAX_PARTS = 400
MAX_NESTED = 2
"""Lists asked within lists. The library itself ends after ten thousand items, all together."""

_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


class Fails(NamedTuple):
    """It has no value, and why."""

    why: str


class Rule(NamedTuple):
    text: str
    root: Node
    program: Any
    """The library's own."""
    names: frozenset[str]
    """That it asks for."""

    def value(self, known: Known) -> Any:
        return known.value(self.program)


class Known:
    """What is known of each name, made ready once for all rules that ask."""

    def __init__(self, values: Mapping[str, Any], names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        """All that there are; those that nobody asks for need no value."""
        self._values = values
        self._ready: Any = None

    def value(self, program: Any) -> Any:
        try:
            if self._ready is None:
                self._ready = _environment(self.names).Activation(dict(self._values))
            found = program.eval(self._ready)
        except (RuntimeError, ValueError, OverflowError, TypeError) as error:
            return Fails(_bare(str(error)))
        return Fails(_bare(str(found.value()))) if found.type().name() == "ERROR" else found.plain_value()

    def with_(self, name: str, value: Any) -> Known:
        return Known({**self._values, name: value}, {*self.names, name})


def read(text: str, names: tuple[str, ...]) -> Rule:
    """A rule that may ask for these names and must say yes or no; NotRead where it is none."""
    if len(text) > MAX_RULE:
        raise NotRead(f"it has {len(text):,} characters, {MAX_RULE:,} is the most")
    rule = part(text, tuple(sorted(names)))
    said = rule.program.return_type().name()
    if said != "BOOL":
        kind = "can be anything (ask == true)" if said == "DYN" else f"is {said.lower()}"
        raise NotRead(f"it {kind}, and must say yes or no", 1)
    if len(tuple(every(rule.root))) > MAX_PARTS:
        raise NotRead(f"it has more than {MAX_PARTS} parts")
    if _nested(rule.root) > MAX_NESTED:
        raise NotRead(f"lists are asked within lists more than {MAX_NESTED} deep")
    written(rule.root)
    return rule


@lru_cache(maxsize=4096)
def part(text: str, names: tuple[str, ...]) -> Rule:
    """Any part of a rule; read once, as reading takes as long as asking fifty times."""
    try:
        program = _environment(names).compile(text)
    except RuntimeError as error:
        raise _not_read(str(error), text) from error
    root = decode(program.serialize())
    return Rule(text, root, program, frozenset(each.name for each in every(root) if isinstance(each, Name)))


def _nested(node: Node) -> int:
    deepest = max(map(_nested, parts(node)), default=0)
    return deepest + isinstance(node, Each)


@cache
def _environment(names: tuple[str, ...]) -> Any:
    # Whoever has no rule need not load what reads them.
    from cel_expr_python import cel

    anything = cel.Type.DYN
    return cel.NewEnv(variables=dict.fromkeys(names, anything))


def _not_read(said: str, text: str) -> NotRead:
    found = _PLACE.search(said)
    if not found:
        return NotRead(_bare(said.splitlines()[0]))
    line, column, what = int(found[1]), int(found[2]), found[3]
    before = sum(len(each) + 1 for each in text.splitlines()[: line - 1])
    what = re.sub(r" expecting \{.*\}$", "", what).replace("mismatched input '<EOF>'", "it ends too early")
    what = what.removesuffix(" (in container '')").removeprefix("Syntax error: ")
    return NotRead(what, before + column)


def _bare(said: str) -> str:
    """Without what the library calls the sort of it."""
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", said)
