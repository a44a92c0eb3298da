"""What a policy can ask of: each name with its fields, so that one that nobody has is told before it counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from pincompute.api.kinds import WORKLOADS
from pincompute.api.policy import Policy
from pincompute.api.project import ProjectSpec
from pincompute.api.shape import bare, item_of, perhaps, plain_of, struct_of
from pincompute.api.wire import Open, Strict, fields_of
from pincompute.objects.cel.rule import Rule, read
from pincompute.objects.cel.syntax import Call, Const, Each, Field, Name, Node, every, parts, quoted
from pincompute.objects.cel.text import written


class About(Strict, frozen=True):
    """Who or what something is."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Container(Strict, frozen=True):
    """One of its own containers, in one copy; parts of the runtime are not among them."""

    name: str = ""
    image: str = ""
    init: bool = False
    """It runs before the others."""
    cpu: float = 0
    """Processors that it asks for."""
    memory: int = 0
    """Bytes that it asks for."""
    cpu_limit: float = 0
    """0 where there is none."""
    memory_limit: int = 0


class Requests(Strict, frozen=True):
    """What all its copies ask for together, as the quota counts it."""

    cpu: float = 0
    memory: int = 0
    gpus: int = 0
    pods: int = 0


class Asker(Strict, frozen=True):
    """Who asks for it."""

    name: str = ""
    sort: str = ""
    """`person` or `program`."""
    groups: list[str] = []
    administers: bool = False


class BuildView(Strict, frozen=True):
    """What was published; nothing of it is there for a file."""

    version: str | None = None
    branch: str | None = None
    commit: str | None = None
    builder: str | None = None
    reviewers: list[str] | None = None


class _Document(NamedTuple):
    """One of our kinds, as far as a rule sees it."""

    fields: dict[str, Any]


VIEW: dict[str, Any] = {
    "build": BuildView,
    "containers": list[Container],
    "project": _Document({"metadata": About, "spec": ProjectSpec}),
    "requests": Requests,
    "who": Asker,
}
"""Beside `workload`, which is of a kind."""
NAMES = (*VIEW, "workload")


class Misread(NamedTuple):
    """A part of a rule that asks for what is not there, or may not be."""

    column: int
    what: str
    next: str = ""


def rule_of(policy: Policy) -> Rule:
    """Read once, however often it is asked; NotRead where it is none."""
    return _read(policy.rule)


@lru_cache(maxsize=1024)
def _read(rule: str) -> Rule:
    return read(rule, NAMES)


def misread(rule: Rule, kinds: Sequence[str]) -> list[Misread]:
    """Fields that no kind has are slips; those that some have are asked of those, or asked for first."""
    found = {kind: {each.column: each for each in _Types(kind, rule.root).misread()} for kind in kinds}
    columns = sorted({column for each in found.values() for column in each})
    told = []
    for column in columns:
        having = [kind for kind in kinds if column not in found[kind]]
        first = next(each[column] for each in found.values() if column in each)
        if having:
            first = first._replace(next=f"kinds: [{', '.join(having)}]")
        told.append(first)
    return told


class _Types:
    """What the parts of a rule are, asked of one kind."""

    def __init__(self, kind: str, root: Node) -> None:
        self._kind = kind
        self._root = root
        self._asked = set(_asked(root))
        self._found: list[Misread] = []

    def misread(self) -> list[Misread]:
        workload = {"kind": str, "metadata": About, "spec": WORKLOADS[self._kind].spec_type()}
        self._type(self._root, {**VIEW, "workload": _Document(workload)})
        return self._found

    def _type(self, node: Node, names: dict[str, Any]) -> Any:
        """None where it can be anything."""
        match node:
            case Name(name=name):
                return names.get(name)
            case Field(of=of, name=name):
                return self._field(_Step(node, of, name, node.at + 2, asked=node.asked), self._type(of, names))
            case Call(function="_[_]", arguments=(of, Const(value=value) as key)) if value.startswith("'"):
                return self._field(_Step(node, of, value[1:-1], key.at + 1), self._type(of, names))
            case Call(function="_[_]", arguments=(of, key)):
                self._type(key, names)
                return item_of(_there(self._type(of, names)))
            case Each(over=over, name=name, part=part):
                whole = _there(self._type(over, names))
                item = item_of(whole) if bare(whole) is list else str if whole is not None else None
                self._type(part, {**names, name: item})
            case _:
                for each in parts(node):
                    self._type(each, names)
        return None

    def _field(self, step: _Step, type_: Any) -> Any:
        if type_ is None:
            return None
        if isinstance(type_, _Document):
            return type_.fields.get(step.name) or self._slip(step, type_.fields)
        type_ = _there(type_)
        struct = struct_of(type_)
        if struct is None and bare(type_) is not dict:
            hint = f"{written(step.of)}.all(each, …)" if bare(type_) is list else ""
            self._found.append(Misread(step.column, f"{written(step.of)} has no fields", hint))
            return None
        fields = {field.encode_name: field for field in fields_of(struct)} if struct else {}
        field = fields.get(step.name)
        # Kubernetes' own have fields that we do not know.
        if struct is not None and field is None and not issubclass(struct, Open):
            return self._slip(step, fields)
        if struct is None or field is None or issubclass(struct, Open) or field.default is None:
            self._ask_first(step)
        return field.type if field else item_of(type_)

    def _slip(self, step: _Step, known: Iterable[str]) -> None:
        kind = f" of a {self._kind}" if written(step.of).startswith("workload") else ""
        hint = perhaps(step.name, known) or f"the fields here are {', '.join(known)}"
        self._found.append(Misread(step.column, f"{written(step.of)}{kind} has no field '{step.name}'", hint))

    def _ask_first(self, step: _Step) -> None:
        """It is not there in every document: without a question for it the rule would have no answer."""
        path = written(step.node)
        if step.asked or path in self._asked:
            return
        first = f"has({path})" if isinstance(step.node, Field) else f"{quoted(step.name)} in {written(step.of)}"
        self._found.append(Misread(step.column, f"{path} may not be there", f"ask first: {first}"))


class _Step(NamedTuple):
    """From what has fields to one of them."""

    node: Node
    of: Node
    name: str
    column: int
    asked: bool = False


def _asked(root: Node) -> Iterator[str]:
    """What a rule asks for, whether it is there."""
    for each in every(root):
        match each:
            case Field(asked=True):
                yield written(each._replace(asked=False))
            case Call(function="@in", arguments=(what, where)):
                yield f"{written(where)}[{written(what)}]"
            case _:
                pass


def _there(type_: Any) -> Any:
    """Without that it may not be there."""
    plain = plain_of(type_)
    if get_origin(plain) not in {Union, UnionType}:
        return plain
    options = [each for each in get_args(plain) if each is not type(None)]
    return plain_of(options[0]) if len(options) == 1 else plain
