"""Injects the parts of a runtime into a pod template: one merge, in which every conflict is a problem.

This replaces a mutating webhook. It happens before the object is created, so that a conflict is reported with the
names of both sides, and the plan of a roll can show the result in advance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pincompute.api.names import KIND_LABEL, PROJECT_LABEL, TIER_LABEL, WORKLOAD_LABEL
from pincompute.api.parameter import parameter_text
from pincompute.api.sidecar import DEFAULT_SERVED_KINDS, PinterestSidecar
from pincompute.api.type_errors import did_you_mean
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import PARAMETER_INVALID, PART_CONFLICT, PART_UNKNOWN, PARTS_CONFLICT
from pincompute.objects.content import Object
from pincompute.planning.pods.container import (
    CONTAINER_SECURITY_DEFAULTS,
    POD_SECURITY_DEFAULTS,
    with_resource_defaults,
)
from pincompute.planning.pods.exclusive_names import (
    ExclusiveKey,
    ExclusiveName,
    part_names,
    template_containers,
    workload_names,
)

PART_DEFAULT_CPU = "10m"
PART_DEFAULT_MEMORY = "32Mi"
PORT_START_TIMEOUT_S = 120
"""Time in which a part has to listen on its port; after that it is restarted."""
_IDENTITY_VARIABLES = (
    ("PIN_PROJECT", PROJECT_LABEL),
    ("PIN_WORKLOAD", WORKLOAD_LABEL),
    ("PIN_KIND", KIND_LABEL),
    ("PIN_TIER", TIER_LABEL),
)
"""Variables that tell a part which workload it serves, with the labels of the same values."""

Configuration = dict[str, dict[str, Any]]


class Injected(NamedTuple):
    """A pod template with the parts of a runtime."""

    template: Object
    parts: tuple[str, ...] = ()
    """Names of the injected parts, such as `logs-2`."""
    problems: tuple[Problem, ...] = ()
    sidecars: tuple[str, ...] = ()
    """Names of the containers that run as sidecars."""


class _PartContainers(NamedTuple):
    """A part, and its containers in this pod."""

    part: PinterestSidecar
    containers: list[Object]


def inject_parts(
    template: Object,
    parts: tuple[PinterestSidecar, ...],
    sidecar_config: Configuration,
    others: tuple[PinterestSidecar, ...] = (),
) -> Injected:
    """Inject the parts in the order of the runtime's list. If there is any problem, nothing is injected.

    `others` are parts of the same runtime that do not serve this workload.
    """
    if not parts and not others:
        # Without a runtime, its configuration has no effect and is no problem either.
        return Injected(template)
    part_containers = [
        _PartContainers(
            each, _containers(each, _needed_parts(each, parts), template, sidecar_config.get(each.part_name, {}))
        )
        for each in parts
    ]
    problems = (
        *_configuration_problems(template, parts, sidecar_config, others),
        *_missing_parts(template, parts),
        *_conflicts(template, part_containers),
    )
    if problems:
        return Injected(template, (), problems)
    if not parts:
        return Injected(template)
    containers = (container for each in part_containers for container in each.containers)
    sidecars = tuple(each["name"] for each in containers if "restartPolicy" in each)
    return Injected(_merge(template, part_containers), tuple(each.metadata.name for each in parts), sidecars=sidecars)


def _merge(template: Object, part_containers: list[_PartContainers]) -> Object:
    """Put the parts' containers before the workload's init containers, which may already need them."""
    parts = [each.part for each in part_containers]
    specs = [each.spec for each in parts]
    pod = template["spec"]
    containers = [container for each in part_containers for container in each.containers]
    merged: Object = {
        **pod,
        "containers": [_with_additions(each, parts) for each in pod.get("containers", ())],
        "initContainers": [*containers, *(_with_additions(each, parts) for each in pod.get("initContainers", ()))],
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


def _needed_parts(part: PinterestSidecar, parts: tuple[PinterestSidecar, ...]) -> list[PinterestSidecar]:
    """Parts that it needs and that start before it."""
    return [each for each in parts[: parts.index(part)] if not each.provided_names.isdisjoint(part.spec.needs)]


def _missing_parts(template: Object, parts: tuple[PinterestSidecar, ...]) -> Iterator[Problem]:
    for part in parts:
        provided = {name for each in _needed_parts(part, parts) for name in each.provided_names}
        for name in part.spec.needs:
            if name not in provided:
                yield Problem(
                    PARTS_CONFLICT,
                    f"{part.metadata.name} needs part '{name}', which does not start before it here",
                    _where(template),
                    next=f"infrastructure team: list {name} before {part.metadata.name}, for the same workloads",
                )


def _with_additions(container: Object, parts: Sequence[PinterestSidecar]) -> Object:
    """Add the variables and mounts of parts. They come first, so that the container's own variables can use them."""
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
    """Init containers of a part, and then its sidecars, which are init containers with restartPolicy Always."""
    spec = part.spec
    variables = [*_identity_variables(template), *_parameters(part, configuration)]
    short = [_short_form_sidecar(part)] if spec.image else []
    return [
        *(_with_additions(_part_container(each, variables), needed) for each in spec.init_containers),
        *(
            {**_with_additions(_part_container(each, variables), needed), "restartPolicy": "Always"}
            for each in (*short, *spec.sidecars)
        ),
    ]


def _short_form_sidecar(part: PinterestSidecar) -> Object:
    """Sidecar of the short form. With a port, it counts as started when it listens on that."""
    spec = part.spec
    cpu, memory = spec.cpu or PART_DEFAULT_CPU, spec.memory or PART_DEFAULT_MEMORY
    sidecar: Object = {
        "name": part.part_name,
        "image": spec.image,
        "resources": with_resource_defaults({}, cpu, memory),
    }
    if spec.port:
        sidecar["ports"] = [{"containerPort": spec.port, "protocol": "TCP"}]
        sidecar["startupProbe"] = {
            "tcpSocket": {"port": spec.port},
            "periodSeconds": 1,
            "failureThreshold": PORT_START_TIMEOUT_S,
        }
    return sidecar


def _part_container(given: Object, variables: list[Object]) -> Object:
    """Container of a part, completed by the defaults for parts: few resources, no privileges."""
    return {
        **given,
        # The image of a part's version never changes, so that a pod can restart while the registry is down.
        "imagePullPolicy": given.get("imagePullPolicy", "IfNotPresent"),
        "terminationMessagePolicy": given.get("terminationMessagePolicy", "FallbackToLogsOnError"),
        "securityContext": {**POD_SECURITY_DEFAULTS, **CONTAINER_SECURITY_DEFAULTS, **given.get("securityContext", {})},
        "resources": with_resource_defaults(given.get("resources", {}), PART_DEFAULT_CPU, PART_DEFAULT_MEMORY),
        "env": [*variables, *given.get("env", ())],
    }


def _identity_variables(template: Object) -> Iterator[Object]:
    labels = template["metadata"].get("labels", {})
    return ({"name": name, "value": labels[label]} for name, label in _IDENTITY_VARIABLES if label in labels)


def _parameters(part: PinterestSidecar, configuration: dict[str, Any]) -> Iterator[Object]:
    for name, parameter in sorted(part.spec.parameters.items()):
        value = configuration.get(name, parameter.default)
        if value is not None:
            yield {"name": parameter.variable, "value": parameter_text(value)}


def _conflicts(template: Object, part_containers: list[_PartContainers]) -> Iterator[Problem]:
    """Problem for each exclusive name that is used twice."""
    used: dict[ExclusiveKey, ExclusiveName] = {name.key: name for name in workload_names(template)}
    own = [each["name"] for each in template_containers(template["spec"])]
    for part, containers in part_containers:
        for name in part_names(part, containers, own):
            first = used.setdefault(name.key, name)
            if first is not name:
                yield _conflict(template, first, name)


def _conflict(template: Object, first: ExclusiveName, second: ExclusiveName) -> Problem:
    if first.by_part:
        return Problem(
            PARTS_CONFLICT,
            f"{first.user} and {second.user} both use {second.description}",
            _where(template),
            next=f"infrastructure team: publish a version of one of them with another {second.category}",
        )
    return Problem(
        PART_CONFLICT,
        f"{first.user} and {second.user}, a part of the runtime, both use {second.description}",
        _where(template),
        next=f"choose another {second.category} in the workload's file",
    )


def _configuration_problems(
    template: Object,
    parts: tuple[PinterestSidecar, ...],
    sidecar_config: Configuration,
    others: tuple[PinterestSidecar, ...],
) -> Iterator[Problem]:
    """Problems of the workload's sidecarConfig: unknown parts, parts that do not serve it, and invalid values."""
    by_name = {each.part_name: each for each in parts}
    not_serving = {each.part_name: each for each in others}
    for name, configuration in sidecar_config.items():
        part = by_name.get(name)
        if part:
            yield from _value_problems(template, part, configuration)
        elif name in not_serving:
            yield _not_serving_problem(template, not_serving[name])
        else:
            yield Problem(
                PART_UNKNOWN,
                f"no part '{name}' serves this workload",
                _where(template, f"spec.sidecarConfig.{name}"),
                f"it is served by {', '.join(by_name) or 'none'}",
                did_you_mean(name, by_name),
            )


def _not_serving_problem(template: Object, part: PinterestSidecar) -> Problem:
    serves = part.spec.serves
    only = [*serves.kinds, *map(str, serves.tiers), *(f"{name}={value}" for name, value in serves.selector.items())]
    only += [f"workloads with {field}" for field in serves.fields]
    return Problem(
        PART_UNKNOWN,
        f"{part.metadata.name} is a part of the runtime and does not serve this workload",
        _where(template, f"spec.sidecarConfig.{part.part_name}"),
        f"it serves {', '.join(only or DEFAULT_SERVED_KINDS)}",
        f"remove {part.part_name} from sidecarConfig",
    )


def _value_problems(template: Object, part: PinterestSidecar, configuration: dict[str, Any]) -> Iterator[Problem]:
    known = part.spec.parameters
    for name, value in configuration.items():
        where = _where(template, f"spec.sidecarConfig.{part.part_name}.{name}")
        if name not in known:
            note = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
            what = f"{part.metadata.name} has no parameter '{name}'"
            yield Problem(PARAMETER_INVALID, what, where, note, did_you_mean(name, known))
            continue
        expected = known[name].mismatch(value)
        if expected:
            what = f"{name} of {part.metadata.name} is {value!r}: expected {expected}"
            yield Problem(
                PARAMETER_INVALID,
                what,
                where,
                known[name].description,
                did_you_mean(parameter_text(value), _allowed(part, name)),
            )


def _allowed(part: PinterestSidecar, name: str) -> list[str]:
    return [parameter_text(each) for each in part.spec.parameters[name].allowed]


def _where(template: Object, field: str = "") -> Where:
    labels = template["metadata"].get("labels", {})
    return Where(
        object="/".join(labels[each] for each in (PROJECT_LABEL, WORKLOAD_LABEL) if each in labels), field=field
    )
