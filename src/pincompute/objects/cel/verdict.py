"""Why a rule does not hold: its parts with their values, and which of them decided that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.base.problem import Part
from pincompute.objects.cel.rule import Fails, Known, Rule, part
from pincompute.objects.cel.syntax import Call, Const, Each, Items, Node, quoted
from pincompute.objects.cel.text import RELATIONS, written

LONGEST = 60
SHOWN = 3
"""Of a list that decided it with each of its items."""


def tree(rule: Rule, known: Known) -> Part:
    """Of a rule that does not hold."""
    return _Reading(known).part(rule.root, decided=True)


class _Reading(NamedTuple):
    known: Known

    def part(self, node: Node, *, decided: bool) -> Part:
        value = self.value(node)
        if not decided:
            return Part(written(node), self._is(node, value), decided)
        below = tuple(self._below(node, value))
        return Part(written(node), "" if below else self._is(node, value), decided, below)

    def value(self, node: Node) -> Any:
        return part(written(node), self.known.names).value(self.known)

    def _below(self, node: Node, value: Any) -> Iterator[Part]:
        match node:
            case Call(function="_&&_" | "_||_" as function):
                every = tuple(_joined(node, function))
                yield from self._of_several(every, value)
            case Call(function="!_", arguments=(inner,)):
                yield self.part(inner, decided=True)
            case Call(function="_?_:_", arguments=(asked, then, otherwise)):
                chosen = self.value(asked)
                yield self.part(asked, decided=True)
                yield self.part(then, decided=chosen is True)
                yield self.part(otherwise, decided=chosen is False)
            case Each():
                yield from self._items(node, value)
            case _:
                return

    def _of_several(self, every: Iterable[Node], value: Any) -> Iterator[Part]:
        """Where one `true` makes the whole true, it is false by all; and the other way round."""
        for each in every:
            found = self.value(each)
            # Without an answer it is by what has none, or is neither yes nor no.
            decided = not isinstance(found, bool) if isinstance(value, Fails) else found is value
            yield self.part(each, decided=decided)

    def _items(self, node: Each, value: Any) -> Iterator[Part]:
        over = self.value(node.over)
        # Of a set of fields its names are asked.
        items: Iterable[Any] = over if isinstance(over, (list, dict)) else ()
        found = [(each, _Reading(self.known.with_(node.name, each))) for each in items]
        told = [
            Part(_called(node.name, each), "", decided=True, parts=(reading.part(node.part, decided=True),))
            for each, reading in found
            if _decides(node.macro, reading.value(node.part), value)
        ]
        yield from told[:SHOWN]
        if len(told) > SHOWN:
            yield Part(f"and {len(told) - SHOWN} more", "", decided=True)
        if not told:
            yield Part(written(node.over), f"is {shown(over)}", decided=True)

    def _is(self, node: Node, value: Any) -> str:
        if isinstance(value, Fails):
            return f"cannot be said: {value.why}"
        sides = tuple(_sides(node))
        if not sides or not isinstance(value, bool):
            return f"is {shown(value)}"
        return ", ".join(f"{written(each)} is {_found(self.value(each))}" for each in sides)


def _joined(node: Node, function: str) -> Iterator[Node]:
    """`a && b && c` is one thing of three parts."""
    if isinstance(node, Call) and node.function == function:
        for each in node.arguments:
            yield from _joined(each, function)
    else:
        yield node


def _sides(node: Node) -> Iterator[Node]:
    """What a comparison compares, or a function was asked of; values that stand in the rule are seen there."""
    if isinstance(node, Call) and (node.function in RELATIONS or node.function.isidentifier()):
        asked = node.arguments if node.target is None else (node.target, *node.arguments)
        yield from (each for each in asked if not _constant(each))


def _constant(node: Node) -> bool:
    match node:
        case Const():
            return True
        case Items(items=items):
            return all(map(_constant, items))
        case _:
            return False


def _decides(macro: str, each: Any, whole: Any) -> bool:
    """What holds for one item makes `exists` true, and what does not makes `all` false; else each of them counts."""
    if isinstance(whole, Fails):
        return isinstance(each, Fails)
    return each is True if macro == "exists_one" else each is whole


def _called(name: str, item: Any) -> str:
    """By its name, where it has one."""
    if isinstance(item, dict) and "name" in item:
        return f"{name}.name is {shown(item['name'])}"
    return f"{name} is {shown(item)}"


def _found(value: Any) -> str:
    return f"unknown: {value.why}" if isinstance(value, Fails) else shown(value)


def shown(value: Any) -> str:
    """As a rule would have it, cut where it is long."""
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, str):
        text = quoted(value)
    else:
        text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
