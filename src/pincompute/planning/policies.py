"""Whether work keeps the policies of its project and of the platform; if not, which part of a rule it breaks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from pincompute.api.identity import Identity
from pincompute.api.kinds import WORKLOADS
from pincompute.api.noun import Noun
from pincompute.api.policy import Policy
from pincompute.api.policy_view import NAMES, misread, rule_of
from pincompute.api.project import Project
from pincompute.api.shape import struct_of
from pincompute.api.wire import Open, fields_of
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import POLICY_DENIED, POLICY_UNCLEAR
from pincompute.objects.cel.rule import Fails, Known, Rule
from pincompute.objects.cel.syntax import NotRead
from pincompute.objects.cel.verdict import tree
from pincompute.objects.content import Object
from pincompute.objects.quantity import amount
from pincompute.planning.pods.pod import own_containers
from pincompute.planning.quotas.footprint import Footprint

ADMINISTRATORS = "who administers the platform"


class Case(NamedTuple):
    """What is asked for, and all that a policy may ask of it."""

    workload: Workload
    footprint: Footprint
    project: Project | None
    who: Identity
    build: Mapping[str, Any] = {}


class _Bound(NamedTuple):
    """A policy, and whose it is."""

    policy: Policy
    of: str
    whom: str

    def __str__(self) -> str:
        return f"the policy {self.policy.name} of {self.of}"


def judge(platform: Sequence[Policy], case: Case) -> tuple[Problem, ...]:
    """Every policy that it does not keep, and every one that cannot say."""
    policies = [
        each for each in _bound(platform, case.project) if case.workload.kind in (each.policy.kinds or WORKLOADS)
    ]
    if not policies:
        return ()
    read: list[tuple[_Bound, Rule]] = []
    problems: list[Problem] = []
    for each in policies:
        try:
            read.append((each, rule_of(each.policy)))
        except NotRead as error:
            problems.append(_unread(each, error, case))
    known = Known(_view(case, frozenset[str]().union(*(rule.names for _, rule in read))), NAMES)
    return (*problems, *(problem for each, rule in read if (problem := _problem(each, rule, known, case))))


def _bound(platform: Sequence[Policy], project: Project | None) -> Iterator[_Bound]:
    for each in platform:
        yield _Bound(each, "the platform", ADMINISTRATORS)
    if project is not None:
        for each in project.spec.policies:
            yield _Bound(each, f"project {project.metadata.name}", project.spec.whom)


def _unread(bound: _Bound, error: NotRead, case: Case) -> Problem:
    place = f" at character {error.column}" if error.column else ""
    what = f"{bound} cannot be read{place}: {error}"
    return Problem(
        POLICY_UNCLEAR, what, _where(case), bound.policy.rule, f"nothing is let in past it: ask {bound.whom}"
    )


def _problem(bound: _Bound, rule: Rule, known: Known, case: Case) -> Problem | None:
    value, name = rule.value(known), case.workload.metadata.name
    if value is True:
        return None
    if value is False:
        what = f"{name} is denied by {bound}: {bound.policy.message}"
        return Problem(POLICY_DENIED, what, _where(case), "", f"mend it, or ask {bound.whom}", tree(rule, known))
    why = value.why if isinstance(value, Fails) else f"it says {value}"
    note = "\n".join(f"at character {each.column}: {each.what}" for each in misread(rule, [case.workload.kind]))
    what = f"{bound} cannot say whether {name} keeps it: {why}"
    next_ = f"nothing is let in past it: ask {bound.whom}"
    return Problem(POLICY_UNCLEAR, what, _where(case), note, next_, tree(rule, known))


def _where(case: Case) -> Where:
    return Where(object=case.workload.metadata.place)


def _view(case: Case, asked: frozenset[str]) -> dict[str, Any]:
    """As far as somebody asks."""
    workload = case.workload
    made: dict[str, Callable[[], Any]] = {
        "workload": lambda: {"kind": workload.kind, **_noun(workload)},
        "containers": lambda: _containers(workload),
        "requests": lambda: _requests(case.footprint),
        "project": lambda: _noun(case.project) if case.project else {"metadata": {"name": workload.metadata.namespace}},
        "who": lambda: _asker(case.who),
        "build": lambda: dict(case.build),
    }
    return {name: make() for name, make in made.items() if name in asked}


def _requests(footprint: Footprint) -> Object:
    counted = {"memory": footprint.memory, "gpus": footprint.gpus, "pods": footprint.pods}
    return {"cpu": footprint.cpu / 1000, **counted}


def _asker(who: Identity) -> Object:
    return {"name": who.name, "sort": str(who.sort), "groups": sorted(who.groups), "administers": who.administers}


def _noun(noun: Noun) -> Object:
    metadata = noun.metadata
    return {
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
        },
        "spec": _filled(type(noun.spec), msgspec.to_builtins(noun.spec)),
    }


def _filled(struct: type, said: Object) -> Object:
    """With what is so by default; what is not there at all stays so."""
    granted, inner = _granted(struct)
    whole = {**granted, **said}
    for name, type_ in inner:
        if name in whole and isinstance(whole[name], dict):
            whole[name] = _filled(type_, whole[name])
    return whole


@cache
def _granted(struct: type) -> tuple[Object, tuple[tuple[str, type], ...]]:
    """The defaults of a struct, and those of its fields that are structs of ours."""
    granted: Object = {}
    inner: list[tuple[str, type]] = []
    for field in fields_of(struct):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if default is not None and default is not msgspec.NODEFAULT:
            granted[field.encode_name] = msgspec.to_builtins(default)
        found = struct_of(field.type)
        if found is not None and not issubclass(found, Open):
            inner.append((field.encode_name, found))
    return granted, tuple(inner)


def _containers(workload: Workload) -> list[Object]:
    beside, before = own_containers(workload)
    return [*(_container(each, init=False) for each in beside), *(_container(each, init=True) for each in before)]


def _container(each: Object, *, init: bool) -> Object:
    requests, limits = each["resources"]["requests"], each["resources"]["limits"]
    return {
        "name": each.get("name", ""),
        "image": each.get("image", ""),
        "init": init,
        "cpu": float(amount(requests.get("cpu", 0))),
        "memory": int(amount(requests.get("memory", 0))),
        "cpuLimit": float(amount(limits.get("cpu", 0))),
        "memoryLimit": int(amount(limits.get("memory", 0))),
    }
