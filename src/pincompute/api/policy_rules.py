"""Checks of policy rules: the variables a rule may read, with their types.

A rule that reads an unknown field is rejected when it is written, not when the first workload is submitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec

from pincompute.api.custom_resource import FieldError, FieldPath
from pincompute.api.kinds import WORKLOADS
from pincompute.api.policy import Policy
from pincompute.api.project import ProjectSpec
from pincompute.api.structs import OpenStruct, StrictStruct, struct_fields
from pincompute.api.type_errors import container_type, did_you_mean, item_of, struct_of, unwrapped_type
from pincompute.objects.cel.rule import CompiledRule, compile_rule
from pincompute.objects.cel.syntax import (
    Call,
    Comprehension,
    Constant,
    Identifier,
    InvalidRule,
    Node,
    Select,
    child_nodes,
    quote_string,
    walk_nodes,
)
from pincompute.objects.cel.unparse import unparse


class MetadataView(StrictStruct, frozen=True):
    """Metadata of a resource, as policies see it."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ContainerView(StrictStruct, frozen=True):
    """One container of a replica. Injected runtime parts are not included."""

    name: str = ""
    image: str = ""
    init: bool = False
    """Init container."""
    cpu: float = 0
    """Requested CPU cores."""
    memory: int = 0
    """Requested bytes."""
    cpu_limit: float = 0
    """0 if there is no limit."""
    memory_limit: int = 0


class RequestsView(StrictStruct, frozen=True):
    """Requests of all replicas together, as the quota counts them."""

    cpu: float = 0
    memory: int = 0
    gpus: int = 0
    pods: int = 0


class CallerView(StrictStruct, frozen=True):
    """The caller that submits the workload."""

    name: str = ""
    type: str = msgspec.field(name="sort", default="")
    """`person` or `program`."""
    groups: list[str] = []
    is_admin: bool = msgspec.field(name="administers", default=False)


class BuildView(StrictStruct, frozen=True):
    """The published build. All fields are unset if a plain file was submitted."""

    version: str | None = None
    branch: str | None = None
    commit: str | None = None
    builder: str | None = None
    reviewers: list[str] | None = None


class _DocumentType(NamedTuple):
    """A document with the types of its top-level fields, as policies see it."""

    fields: dict[str, Any]


POLICY_VARIABLES: dict[str, Any] = {
    "build": BuildView,
    "containers": list[ContainerView],
    "project": _DocumentType({"metadata": MetadataView, "spec": ProjectSpec}),
    "requests": RequestsView,
    "who": CallerView,
}
"""Types of the variables. `workload` is added for each kind."""
POLICY_VARIABLE_NAMES = (*POLICY_VARIABLES, "workload")


class RuleError(NamedTuple):
    """A part of a rule that reads an unknown field or one that may be absent."""

    column: int
    what: str
    next: str = ""


def policy_errors(policies: Sequence[Policy], path: FieldPath) -> Iterator[FieldError]:
    """Errors of policies: duplicate names, unknown kinds and invalid rules.

    Without the optional CEL library, as in a plain CLI installation, rules are not checked. The desk always has it.
    """
    names: set[str] = set()
    for index, policy in enumerate(policies):
        if policy.name in names:
            yield FieldError((*path, index, "name"), f"duplicate policy name '{policy.name}'")
        names.add(policy.name)
        with suppress(ModuleNotFoundError):
            yield from _kind_and_rule_errors(policy, (*path, index))


def _kind_and_rule_errors(policy: Policy, path: FieldPath) -> Iterator[FieldError]:
    unknown_kinds = [each for each in policy.kinds if each not in WORKLOADS]
    for kind in unknown_kinds:
        note = f"kinds: {', '.join(WORKLOADS)}"
        yield FieldError((*path, "kinds"), f"unknown kind of workload '{kind}'", note, did_you_mean(kind, WORKLOADS))
    if unknown_kinds:
        return
    try:
        rule = compiled_rule(policy)
    except InvalidRule as error:
        yield FieldError((*path, "rule"), _with_column(str(error), error.column))
        return
    for error in rule_errors(rule, policy.kinds or list(WORKLOADS)):
        yield FieldError((*path, "rule"), _with_column(error.what, error.column), next=error.next)


def _with_column(what: str, column: int) -> str:
    return f"at character {column} of the rule: {what}" if column else f"invalid rule: {what}"


def compiled_rule(policy: Policy) -> CompiledRule:
    """Compile the rule, cached. Raises InvalidRule."""
    return _compiled(policy.rule)


@lru_cache(maxsize=1024)
def _compiled(rule: str) -> CompiledRule:
    return compile_rule(rule, POLICY_VARIABLE_NAMES)


def rule_errors(rule: CompiledRule, kinds: Sequence[str]) -> list[RuleError]:
    """Type errors of a rule, checked against each kind.

    A field that no kind has is an error. For one that only some kinds have, the error suggests to restrict `kinds`.
    """
    by_kind = {kind: {each.column: each for each in _TypeChecker(kind, rule.root).errors()} for kind in kinds}
    columns = sorted({column for errors in by_kind.values() for column in errors})
    found = []
    for column in columns:
        valid_kinds = [kind for kind in kinds if column not in by_kind[kind]]
        error = next(errors[column] for errors in by_kind.values() if column in errors)
        if valid_kinds:
            error = error._replace(next=f"kinds: [{', '.join(valid_kinds)}]")
        found.append(error)
    return found


class _TypeChecker:
    """Infers the types of a rule's parts for one kind."""

    def __init__(self, kind: str, root: Node) -> None:
        self._kind = kind
        self._root = root
        self._tested = set(_tested_paths(root))
        self._errors: list[RuleError] = []

    def errors(self) -> list[RuleError]:
        workload = {"kind": str, "metadata": MetadataView, "spec": WORKLOADS[self._kind].spec_type()}
        self._type(self._root, {**POLICY_VARIABLES, "workload": _DocumentType(workload)})
        return self._errors

    def _type(self, node: Node, names: dict[str, Any]) -> Any:
        """Type of a node; None if it can be anything."""
        match node:
            case Identifier(name=name):
                return names.get(name)
            case Select(operand=operand, name=name):
                access = _Access(node, operand, name, node.at + 2, is_test=node.test_only)
                return self._field_type(access, self._type(operand, names))
            case Call(function="_[_]", arguments=(operand, Constant(value=value) as key)) if value.startswith("'"):
                access = _Access(node, operand, value[1:-1], key.at + 1)
                return self._field_type(access, self._type(operand, names))
            case Call(function="_[_]", arguments=(operand, key)):
                self._type(key, names)
                return item_of(_without_none(self._type(operand, names)))
            case Comprehension(iter_range=iter_range, name=name, body=body):
                whole = _without_none(self._type(iter_range, names))
                item = item_of(whole) if container_type(whole) is list else str if whole is not None else None
                self._type(body, {**names, name: item})
            case _:
                for child in child_nodes(node):
                    self._type(child, names)
        return None

    def _field_type(self, access: _Access, type_: Any) -> Any:
        if type_ is None:
            return None
        if isinstance(type_, _DocumentType):
            return type_.fields.get(access.name) or self._add_unknown(access, type_.fields)
        type_ = _without_none(type_)
        struct = struct_of(type_)
        if struct is None and container_type(type_) is not dict:
            hint = f"{unparse(access.operand)}.all(each, …)" if container_type(type_) is list else ""
            self._errors.append(RuleError(access.column, f"{unparse(access.operand)} has no fields", hint))
            return None
        fields = {field.encode_name: field for field in struct_fields(struct)} if struct else {}
        field = fields.get(access.name)
        # Embedded Kubernetes types have fields that are not described here.
        if struct is not None and field is None and not issubclass(struct, OpenStruct):
            return self._add_unknown(access, fields)
        if struct is None or field is None or issubclass(struct, OpenStruct) or field.default is None:
            self._add_untested(access)
        return field.type if field else item_of(type_)

    def _add_unknown(self, access: _Access, known: Iterable[str]) -> None:
        operand = unparse(access.operand)
        kind = f" of {self._kind}" if operand.startswith("workload") else ""
        hint = did_you_mean(access.name, known) or f"fields: {', '.join(known)}"
        self._errors.append(RuleError(access.column, f"{operand}{kind} has no field '{access.name}'", hint))

    def _add_untested(self, access: _Access) -> None:
        """Report a field that may be absent and that the rule does not test for presence: evaluation would fail."""
        path = unparse(access.node)
        if access.is_test or path in self._tested:
            return
        operand = unparse(access.operand)
        test = f"has({path})" if isinstance(access.node, Select) else f"{quote_string(access.name)} in {operand}"
        self._errors.append(RuleError(access.column, f"{path} may be absent", f"test first: {test}"))


class _Access(NamedTuple):
    """Access to a field of an object."""

    node: Node
    operand: Node
    name: str
    column: int
    is_test: bool = False


def _tested_paths(root: Node) -> Iterator[str]:
    """Fields that the rule tests for presence."""
    for node in walk_nodes(root):
        match node:
            case Select(test_only=True):
                yield unparse(node._replace(test_only=False))
            case Call(function="@in", arguments=(key, operand)):
                yield f"{unparse(operand)}[{unparse(key)}]"
            case _:
                pass


def _without_none(type_: Any) -> Any:
    """The type without None."""
    plain = unwrapped_type(type_)
    if get_origin(plain) not in {Union, UnionType}:
        return plain
    options = [each for each in get_args(plain) if each is not type(None)]
    return unwrapped_type(options[0]) if len(options) == 1 else plain
