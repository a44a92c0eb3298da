"""What the parts of a runtime add to a pod template: one merge, in which a conflict is a Problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pincompute.api.names import KIND, PROJECT, TIER, WORKLOAD
from pincompute.api.parameter import text
from pincompute.api.shape import perhaps
from pincompute.api.sidecar import USUALLY, PinterestSidecar
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import PARAMETER_INVALID, PART_CONFLICT, PART_UNKNOWN, PARTS_DISAGREE
from pincompute.objects.content import Object
from pincompute.planning.pods.claims import Claim, Key, of_part, of_workload, own_containers
from pincompute.planning.pods.container import SAFE, SAFE_CONTAINER, amounts

LEAST_CPU = "10m"
LEAST_MEMORY = "32Mi"
PATIENCE = 120
"""Seconds that a part may take to listen on its port before it is started again."""
_TOLD = (("PIN_PROJECT", PROJECT), ("PIN_WORKLOAD", WORKLOAD), ("PIN_KIND", KIND), ("PIN_TIER", TIER))
"""What a part is told of whom it serves, by the labels that say the same."""

Configuration = dict[str, dict[str, Any]]


class Injected(NamedTuple):
    template: Object
    parts: tuple[str, ...] = ()
    """What was injected, such as `logs-2`."""
    problems: tuple[Problem, ...] = ()
    sidecars: tuple[str, ...] = ()
    """The containers that run beside the program."""


class _Bringing(NamedTuple):
    """A part, and the containers that it brings into this pod."""

    part: PinterestSidecar
    containers: list[Object]


def inject(
    template: Object,
    parts: tuple[PinterestSidecar, ...],
    sidecar_config: Configuration,
    others: tuple[PinterestSidecar, ...] = (),
) -> Injected:
    """In the order of the runtime's list. Where anything is wrong, all of it is told and nothing is injected.

    `others` are in the runtime as well, and do not serve this workload.
    """
    if not parts and not others:
        # Without a runtime there is nothing to set, and nothing to say.
        return Injected(template)
    bringing = [
        _Bringing(each, _containers(each, _needed(each, parts), template, sidecar_config.get(each.part, {})))
        for each in parts
    ]
    problems = (
        *_misconfigured(template, parts, sidecar_config, others),
        *_lacking(template, parts),
        *_conflicts(template, bringing),
    )
    if problems:
        return Injected(template, (), problems)
    if not parts:
        return Injected(template)
    beside = tuple(each["name"] for one in bringing for each in one.containers if "restartPolicy" in each)
    return Injected(_merged(template, bringing), tuple(each.metadata.name for each in parts), sidecars=beside)


def _merged(template: Object, bringing: list[_Bringing]) -> Object:
    """Before the workload's own init containers, so that all is there when they run."""
    parts = [each.part for each in bringing]
    specs = [each.spec for each in parts]
    pod = template["spec"]
    containers = [container for each in bringing for container in each.containers]
    merged: Object = {
        **pod,
        "containers": [_served(each, parts) for each in pod.get("containers", ())],
        "initContainers": [*containers, *(_served(each, parts) for each in pod.get("initContainers", ()))],
        "volumes": [*pod.get("volumes", ()), *(volume for spec in specs for volume in spec.volumes)],
        "readinessGates": [
            *pod.get("readinessGates", ()),
            *({"conditionType": gate} for spec in specs for gate in spec.readiness_gates),
        ],
    }
    metadata = template["metadata"]
    labels = {name: value for spec in specs for name, value in spec.labels.items()}
    return {
        **template,
        "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}},
        "spec": {field: value for field, value in merged.items() if value != [] or field in pod},
    }


def _needed(part: PinterestSidecar, parts: tuple[PinterestSidecar, ...]) -> list[PinterestSidecar]:
    """Those that have started when it does."""
    return [each for each in parts[: parts.index(part)] if not each.provided.isdisjoint(part.spec.needs)]


def _lacking(template: Object, parts: tuple[PinterestSidecar, ...]) -> Iterator[Problem]:
    for part in parts:
        there = {name for each in _needed(part, parts) for name in each.provided}
        for name in part.spec.needs:
            if name not in there:
                yield Problem(
                    PARTS_DISAGREE,
                    f"{part.metadata.name} needs the part '{name}', which does not start before it here",
                    _where(template),
                    next=f"the infrastructure team puts {name} before {part.metadata.name}, for the same workloads",
                )


def _served(container: Object, parts: Sequence[PinterestSidecar]) -> Object:
    """With what parts add; what they set comes first, so that its own variables can build on it."""
    specs = [each.spec for each in parts]
    variables = [{"name": name, "value": spec.environment[name]} for spec in specs for name in sorted(spec.environment)]
    mounts = [mount for spec in specs for mount in spec.mounts]
    added: Object = {}
    if variables:
        added["env"] = [*variables, *container.get("env", ())]
    if mounts:
        added["volumeMounts"] = [*container.get("volumeMounts", ()), *mounts]
    return {**container, **added}


def _containers(
    part: PinterestSidecar, needed: Sequence[PinterestSidecar], template: Object, configuration: dict[str, Any]
) -> list[Object]:
    """What runs before, and then what runs beside: a sidecar is an init container that never ends."""
    spec = part.spec
    variables = [*_told(template), *_parameters(part, configuration)]
    short = [_short(part)] if spec.image else []
    return [
        *(_served(_container(each, variables), needed) for each in spec.init_containers),
        *(
            {**_served(_container(each, variables), needed), "restartPolicy": "Always"}
            for each in (*short, *spec.sidecars)
        ),
    ]


def _short(part: PinterestSidecar) -> Object:
    """The sidecar of the short form; what is to listen has started when it does."""
    spec = part.spec
    cpu, memory = spec.cpu or LEAST_CPU, spec.memory or LEAST_MEMORY
    made: Object = {"name": part.part, "image": spec.image, "resources": amounts({}, cpu, memory)}
    if spec.port:
        made["ports"] = [{"containerPort": spec.port, "protocol": "TCP"}]
        made["startupProbe"] = {"tcpSocket": {"port": spec.port}, "periodSeconds": 1, "failureThreshold": PATIENCE}
    return made


def _container(given: Object, variables: list[Object]) -> Object:
    """As the part says, and otherwise with the least rights and the least use."""
    return {
        **given,
        # A version of a part never changes, nor does its image: a pod starts anew without any registry.
        "imagePullPolicy": given.get("imagePullPolicy", "IfNotPresent"),
        "terminationMessagePolicy": given.get("terminationMessagePolicy", "FallbackToLogsOnError"),
        "securityContext": {**SAFE, **SAFE_CONTAINER, **given.get("securityContext", {})},
        "resources": amounts(given.get("resources", {}), LEAST_CPU, LEAST_MEMORY),
        "env": [*variables, *given.get("env", ())],
    }


def _told(template: Object) -> Iterator[Object]:
    labels = template["metadata"].get("labels", {})
    return ({"name": name, "value": labels[label]} for name, label in _TOLD if label in labels)


def _parameters(part: PinterestSidecar, configuration: dict[str, Any]) -> Iterator[Object]:
    for name, parameter in sorted(part.spec.parameters.items()):
        value = configuration.get(name, parameter.default)
        if value is not None:
            yield {"name": parameter.variable, "value": text(value)}


def _conflicts(template: Object, bringing: list[_Bringing]) -> Iterator[Problem]:
    """Each thing that two want: the first has it, and the other is told of."""
    taken: dict[Key, Claim] = {claim.key: claim for claim in of_workload(template)}
    own = [each["name"] for each in own_containers(template["spec"])]
    for each in bringing:
        for claim in of_part(each.part, each.containers, own):
            first = taken.setdefault(claim.key, claim)
            if first is not claim:
                yield _conflict(template, first, claim)


def _conflict(template: Object, first: Claim, second: Claim) -> Problem:
    if first.part:
        return Problem(
            PARTS_DISAGREE,
            f"{first.whose} and {second.whose} both want {second.words}",
            _where(template),
            next=f"the infrastructure team makes a version of one of them that takes another {second.noun}",
        )
    return Problem(
        PART_CONFLICT,
        f"{first.whose} and {second.whose}, a part of the runtime, both want {second.words}",
        _where(template),
        next=f"choose another {second.noun} in the workload's file",
    )


def _misconfigured(
    template: Object,
    parts: tuple[PinterestSidecar, ...],
    sidecar_config: Configuration,
    others: tuple[PinterestSidecar, ...],
) -> Iterator[Problem]:
    """What the workload sets of parts that do not serve it, or sets as it cannot be."""
    by_name = {each.part: each for each in parts}
    elsewhere = {each.part: each for each in others}
    for name, configuration in sidecar_config.items():
        part = by_name.get(name)
        if part:
            yield from _wrong_values(template, part, configuration)
        elif name in elsewhere:
            yield _serves_others(template, elsewhere[name])
        else:
            yield Problem(
                PART_UNKNOWN,
                f"no part '{name}' serves this workload",
                _where(template, f"spec.sidecarConfig.{name}"),
                f"it is served by {', '.join(by_name) or 'none'}",
                perhaps(name, by_name),
            )


def _serves_others(template: Object, part: PinterestSidecar) -> Problem:
    whom = part.spec.serves
    only = [*whom.kinds, *map(str, whom.tiers), *(f"{name}={value}" for name, value in whom.selector.items())]
    return Problem(
        PART_UNKNOWN,
        f"{part.metadata.name} is a part of the runtime and does not serve this workload",
        _where(template, f"spec.sidecarConfig.{part.part}"),
        f"it serves {', '.join(only or USUALLY)}",
        f"take {part.part} out of sidecarConfig",
    )


def _wrong_values(template: Object, part: PinterestSidecar, configuration: dict[str, Any]) -> Iterator[Problem]:
    known = part.spec.parameters
    for name, value in configuration.items():
        where = _where(template, f"spec.sidecarConfig.{part.part}.{name}")
        if name not in known:
            note = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
            what = f"{part.metadata.name} has no parameter '{name}'"
            yield Problem(PARAMETER_INVALID, what, where, note, perhaps(name, known))
            continue
        expected = known[name].misfit(value)
        if expected:
            what = f"{name} of {part.metadata.name} is {value!r}: expected {expected}"
            yield Problem(
                PARAMETER_INVALID, what, where, known[name].description, perhaps(text(value), _allowed(part, name))
            )


def _allowed(part: PinterestSidecar, name: str) -> list[str]:
    return [text(each) for each in part.spec.parameters[name].allowed]


def _where(template: Object, field: str = "") -> Where:
    labels = template["metadata"].get("labels", {})
    return Where(object="/".join(labels[each] for each in (PROJECT, WORKLOAD) if each in labels), field=field)
