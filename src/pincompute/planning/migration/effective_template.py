"""Effective content of a pod template, in a normal form that does not depend on how the template spells it.

The import compares the running template with the generated one by it: two templates with an equal normal form run the
same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from pincompute.api.names import GROUP, PRIORITY_CLASS_PREFIX
from pincompute.objects.comparison import FieldDifference, field_differences, short_text
from pincompute.objects.content import Object, content_hash
from pincompute.objects.defaults import PROBES, strip_pod_defaults
from pincompute.objects.quantity import parse_quantity
from pincompute.planning.diagnosis.excerpts import mask_secrets

ConfigMapsByName = Mapping[str, Object]
"""The ConfigMaps that could be read."""

KUBERNETES_POD_SECURITY: Object = {"runAsNonRoot": False, "seccompProfile": {"type": "Unconfined"}}
KUBERNETES_CONTAINER_SECURITY: Object = {"allowPrivilegeEscalation": True, "capabilities": {}}
"""Kubernetes' own defaults of a pod's and of a container's security context."""
KUBERNETES_POD_FEATURES = ("enableServiceLinks", "automountServiceAccountToken")
"""Features that Kubernetes gives to every pod, and the platform only on request."""


def effective_template(template: Object, files: ConfigMapsByName, account: str = "") -> Object:
    """The normal form, without names that only connect parts of the template, and without platform labels."""
    stripped = strip_pod_defaults(template)
    pod = stripped["spec"]
    volumes = {volume["name"]: _volume_content(volume, files) for volume in pod.get("volumes", ())}
    rest = {name: value for name, value in pod.items() if name not in _NORMALIZED_FIELDS}
    groups = {
        group: [_effective_container(each, volumes) for each in pod.get(group, ())] for group in _CONTAINER_GROUPS
    }
    mounted = {
        mount["name"]
        for group in _CONTAINER_GROUPS
        for container in pod.get(group, ())
        for mount in container.get("volumeMounts", ())
    }
    metadata = stripped["metadata"]
    return {
        "labels": without_platform_names(metadata.get("labels", {})),
        "annotations": without_platform_names(metadata.get("annotations", {})),
        **rest,
        **groups,
        "securityContext": _without_defaults(pod.get("securityContext", {}), KUBERNETES_POD_SECURITY),
        # A mounted volume is compared with its mount.
        "volumes": [{"name": name, **content} for name, content in volumes.items() if name not in mounted],
        **_priority_class(pod),
        "serviceAccountName": pod.get("serviceAccountName") or account or "default",
        "terminationGracePeriodSeconds": pod.get("terminationGracePeriodSeconds", 30),
    }


def describe_differences(before: Object, after: Object) -> tuple[str, ...]:
    """One line for each field that differs, or that only one side has, with secrets masked."""
    changed = list(field_differences(before, after))
    paths = [each.path for each in changed]
    removed = [
        FieldDifference(each.path, each.after)
        for each in field_differences(after, before)
        if not _is_covered(each.path, paths)
    ]
    differences = sorted((*changed, *removed), key=lambda each: each.path)
    return tuple(
        _difference_line(each) for each in differences if each.before not in _EMPTY or each.after not in _EMPTY
    )


_CONTAINER_GROUPS = ("containers", "initContainers")
_NORMALIZED_FIELDS = {*_CONTAINER_GROUPS, "volumes", "priorityClassName", "serviceAccount", "securityContext"}
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _is_covered(path: str, paths: list[str]) -> bool:
    return any(each == path or path.startswith(f"{each}.") or each.startswith(f"{path}.") for each in paths)


def _difference_line(change: FieldDifference) -> str:
    old, new = ("" if each in _EMPTY else short_text(each) for each in (change.before, change.after))
    path = change.path.replace("containers.", "container ", 1) if change.path.startswith("containers.") else change.path
    return mask_secrets(f"{path}: {old or 'none'} -> {new or 'none'}")


def without_platform_names(labels: Mapping[str, str]) -> Object:
    return {name: value for name, value in labels.items() if not name.startswith(f"{GROUP}/")}


def _priority_class(pod: Object) -> Object:
    """No priority class is equal to the default tier."""
    name = pod.get("priorityClassName", "")
    return {} if not name or name == f"{PRIORITY_CLASS_PREFIX}on-demand" else {"priorityClassName": name}


def _effective_container(container: Object, volumes: Mapping[str, Object]) -> Object:
    mounts = [_effective_mount(each, volumes) for each in container.get("volumeMounts", ())]
    rest = {name: value for name, value in container.items() if name != "ports"}
    return {
        **rest,
        **{probe: _with_port_numbers(rest[probe], container) for probe in PROBES if probe in rest},
        # Generated containers report their last log lines; the program does not notice the difference.
        "terminationMessagePolicy": "File",
        # A container port without a host port is information only. References to its name are compared elsewhere.
        "ports": [port for port in container.get("ports", ()) if "hostPort" in port],
        "volumeMounts": mounts,
        "env": list(_effective_variables(container.get("env", ()))),
        "resources": _effective_resources(container.get("resources", {})),
        "securityContext": _without_defaults(container.get("securityContext", {}), KUBERNETES_CONTAINER_SECURITY),
    }


def _with_port_numbers(probe: Object, container: Object) -> Object:
    """The probe with the number of a port that it refers to by name."""
    numbers = {port.get("name"): port["containerPort"] for port in container.get("ports", ())}
    handlers = {name: probe[name] for name in ("httpGet", "tcpSocket") if name in probe}
    by_number = {
        name: {**handler, "port": numbers.get(handler["port"], handler["port"])} for name, handler in handlers.items()
    }
    return {**probe, **by_number}


def _effective_mount(mount: Object, volumes: Mapping[str, Object]) -> Object:
    """The mount with the content of its volume instead of the volume's name."""
    volume = volumes.get(mount["name"], {})
    # These volumes are read-only anyway.
    implied = {"readOnly"} if volume.keys() & {"configMap", "secret", "downwardAPI", "projected"} else set()
    rest = {name: value for name, value in mount.items() if name not in {"name", *implied}}
    return {**rest, "volume": volume}


def _volume_content(volume: Object, files: ConfigMapsByName) -> Object:
    """The volume without its name. A ConfigMap is represented by its content: the generated one has another name."""
    rest = {name: value for name, value in volume.items() if name != "name"}
    source = rest.get("configMap")
    config_map = files.get(source["name"]) if source else None
    if source and config_map is not None:
        settings = {name: value for name, value in source.items() if name != "name"}
        content = [config_map.get("data", {}), config_map.get("binaryData", {})]
        rest["configMap"] = {**settings, "files": content_hash(content)}
    return rest


def _effective_variables(entries: list[Object]) -> Iterator[Object]:
    """The last entry of each name, sorted unless one refers to another: only then does the order matter."""
    variables = list({entry["name"]: entry for entry in entries}.values())
    if any(references_variable(each) for each in variables):
        return iter(variables)
    return iter(sorted(variables, key=lambda each: each["name"]))


def references_variable(variable: Object) -> bool:
    return "$(" in variable.get("value", "")


def _effective_resources(resources: Object) -> Object:
    """The resources in normal units, with limits as requests where Kubernetes would assume that."""
    limits = resources.get("limits", {})
    complete = {**resources, "requests": {**limits, **resources.get("requests", {})}, "limits": limits}
    return {
        name: {resource: _normal_quantity(parse_quantity(amount)) for resource, amount in value.items()}
        if name in {"requests", "limits"}
        else value
        for name, value in complete.items()
    }


def _normal_quantity(amount: Fraction) -> str:
    for unit, size in (("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount) if amount.denominator == 1 else f"{float(amount * 1000):g}m"


def _without_defaults(context: Object, defaults: Object) -> Object:
    return {name: value for name, value in context.items() if value != defaults.get(name)}
