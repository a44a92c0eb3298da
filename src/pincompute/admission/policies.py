"""Policy evaluation: which policies of the project and of the platform a workload violates, and which part of a rule
decided that.

Pure. A policy that cannot be evaluated rejects the workload, too: a typing error in a rule must not open the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.identity import Identity
from pincompute.api.kinds import WORKLOADS
from pincompute.api.policy import Policy
from pincompute.api.policy_rules import POLICY_VARIABLE_NAMES, compiled_rule, rule_errors
from pincompute.api.project import Project
from pincompute.api.structs import OpenStruct, struct_fields
from pincompute.api.type_errors import struct_of
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import POLICY_DENIED, POLICY_INVALID
from pincompute.objects.cel.explanation import explain_failure
from pincompute.objects.cel.rule import CompiledRule, EvaluationError, RuleInputs
from pincompute.objects.cel.syntax import InvalidRule
from pincompute.objects.content import Object
from pincompute.objects.quantity import parse_quantity
from pincompute.planning.footprint import Footprint
from pincompute.planning.pods.pod import workload_containers

PLATFORM_CONTACT = "the platform administrators"


class PolicyInput(NamedTuple):
    """A submission as policy rules see it."""

    workload: Workload
    footprint: Footprint
    project: Project | None
    caller: Identity
    build: Mapping[str, Any] = {}


class _OwnedPolicy(NamedTuple):
    """A policy with its owner, as named in messages."""

    policy: Policy
    owner: str
    contact: str

    def __str__(self) -> str:
        return f"policy {self.policy.name} of {self.owner}"


def evaluate_policies(platform: Sequence[Policy], case: PolicyInput) -> tuple[Problem, ...]:
    """One problem for each policy that the workload violates, and for each that cannot be evaluated."""
    policies = [
        each
        for each in _owned_policies(platform, case.project)
        if case.workload.kind in (each.policy.kinds or WORKLOADS)
    ]
    if not policies:
        return ()
    compiled: list[tuple[_OwnedPolicy, CompiledRule]] = []
    problems: list[Problem] = []
    for policy in policies:
        try:
            compiled.append((policy, compiled_rule(policy.policy)))
        except InvalidRule as error:
            problems.append(_invalid_policy(policy, error, case))
    # Only the variables that some rule names are built: the containers of a workload are costly to compute.
    names = frozenset[str]().union(*(rule.names for _, rule in compiled))
    inputs = RuleInputs(_rule_variables(case, names), POLICY_VARIABLE_NAMES)
    violations = (_violation(policy, rule, inputs, case) for policy, rule in compiled)
    return (*problems, *(each for each in violations if each))


def _owned_policies(platform: Sequence[Policy], project: Project | None) -> Iterator[_OwnedPolicy]:
    for policy in platform:
        yield _OwnedPolicy(policy, "the platform", PLATFORM_CONTACT)
    if project is not None:
        for policy in project.spec.policies:
            yield _OwnedPolicy(policy, f"project {project.metadata.name}", project.spec.owner_text)


def _invalid_policy(policy: _OwnedPolicy, error: InvalidRule, case: PolicyInput) -> Problem:
    position = f" at character {error.column}" if error.column else ""
    what = f"{policy} is invalid{position}: {error}"
    return Problem(POLICY_INVALID, what, _where(case), policy.policy.rule, _fix_invalid_policy(policy))


def _violation(policy: _OwnedPolicy, rule: CompiledRule, inputs: RuleInputs, case: PolicyInput) -> Problem | None:
    value, name = rule.evaluate(inputs), case.workload.metadata.name
    if value is True:
        return None
    if value is False:
        what = f"{name} violates {policy}: {policy.policy.message}"
        next_ = f"fix it, or ask {policy.contact}"
        return Problem(POLICY_DENIED, what, _where(case), "", next_, explain_failure(rule, inputs))
    why = value.why if isinstance(value, EvaluationError) else f"its result is {value}"
    note = "\n".join(f"at character {error.column}: {error.what}" for error in rule_errors(rule, [case.workload.kind]))
    what = f"{policy} cannot be evaluated for {name}: {why}"
    return Problem(POLICY_INVALID, what, _where(case), note, _fix_invalid_policy(policy), explain_failure(rule, inputs))


def _fix_invalid_policy(policy: _OwnedPolicy) -> str:
    return f"ask {policy.contact} to fix the policy: until then it rejects every submission that it cannot evaluate"


def _where(case: PolicyInput) -> Where:
    return Where(object=case.workload.metadata.key)


def _rule_variables(case: PolicyInput, names: frozenset[str]) -> dict[str, Any]:
    """The variables of the rules, limited to the given names. The keys are the public vocabulary of policies."""
    workload = case.workload
    variables: dict[str, Callable[[], Any]] = {
        "workload": lambda: {"kind": workload.kind, **_resource_view(workload)},
        "containers": lambda: _containers_view(workload),
        "requests": lambda: _requests_view(case.footprint),
        "project": lambda: (
            _resource_view(case.project) if case.project else {"metadata": {"name": workload.metadata.namespace}}
        ),
        "who": lambda: _caller_view(case.caller),
        "build": lambda: dict(case.build),
    }
    return {name: value() for name, value in variables.items() if name in names}


def _requests_view(footprint: Footprint) -> Object:
    whole_numbers = {"memory": footprint.memory, "gpus": footprint.gpus, "pods": footprint.pods}
    return {"cpu": footprint.cpu / 1000, **whole_numbers}


def _caller_view(caller: Identity) -> Object:
    return {
        "name": caller.name,
        "sort": str(caller.type),
        "groups": sorted(caller.groups),
        "administers": caller.is_admin,
    }


def _resource_view(resource: CustomResource) -> Object:
    metadata = resource.metadata
    return {
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
        },
        "spec": _with_defaults(type(resource.spec), msgspec.to_builtins(resource.spec)),
    }


def _with_defaults(struct: type, fields: Object) -> Object:
    """The fields with the defaults of the struct filled in. Fields that default to None stay absent, for `has()`."""
    defaults, inner = _defaults_of(struct)
    complete = {**defaults, **fields}
    for name, type_ in inner:
        if name in complete and isinstance(complete[name], dict):
            complete[name] = _with_defaults(type_, complete[name])
    return complete


@cache
def _defaults_of(struct: type) -> tuple[Object, tuple[tuple[str, type], ...]]:
    """Defaults of a struct, and its fields that are structs of ours."""
    defaults: Object = {}
    inner: list[tuple[str, type]] = []
    for field in struct_fields(struct):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if default is not None and default is not msgspec.NODEFAULT:
            defaults[field.encode_name] = msgspec.to_builtins(default)
        field_struct = struct_of(field.type)
        if field_struct is not None and not issubclass(field_struct, OpenStruct):
            inner.append((field.encode_name, field_struct))
    return defaults, tuple(inner)


def _containers_view(workload: Workload) -> list[Object]:
    containers, init_containers = workload_containers(workload)
    return [
        *(_container_view(each, init=False) for each in containers),
        *(_container_view(each, init=True) for each in init_containers),
    ]


def _container_view(container: Object, *, init: bool) -> Object:
    requests, limits = container["resources"]["requests"], container["resources"]["limits"]
    return {
        "name": container.get("name", ""),
        "image": container.get("image", ""),
        "init": init,
        "cpu": float(parse_quantity(requests.get("cpu", 0))),
        "memory": int(parse_quantity(requests.get("memory", 0))),
        "cpuLimit": float(parse_quantity(limits.get("cpu", 0))),
        "memoryLimit": int(parse_quantity(limits.get("memory", 0))),
    }
