"""What a pod template comes to, however it is said: by it, what runs is compared with what would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from pincompute.api.names import GROUP, PRIORITY
from pincompute.objects.comparison import Change, changes, shortened
from pincompute.objects.content import Object, digest
from pincompute.objects.defaults import PROBES, plain
from pincompute.objects.quantity import amount
from pincompute.planning.why.words import masked

Files = Mapping[str, Object]
"""ConfigMaps by name, as far as they are known."""

OPEN: Object = {"runAsNonRoot": False, "seccompProfile": {"type": "Unconfined"}}
OPEN_CONTAINER: Object = {"allowPrivilegeEscalation": True, "capabilities": {}}
"""Rights that a pod, and a container, have where nobody says a word."""


def of_template(template: Object, files: Files, account: str = "") -> Object:
    """Without names that only tie its own parts together, and without what every workload bears."""
    found = plain(template)
    pod = found["spec"]
    volumes = {each["name"]: _content(each, files) for each in pod.get("volumes", ())}
    rest = {field: each for field, each in pod.items() if field not in _APART}
    groups = {group: [_container(each, volumes) for each in pod.get(group, ())] for group in _GROUPS}
    mounted = {each["name"] for group in _GROUPS for one in pod.get(group, ()) for each in one.get("volumeMounts", ())}
    metadata = found["metadata"]
    return {
        "labels": _theirs(metadata.get("labels", {})),
        "annotations": _theirs(metadata.get("annotations", {})),
        **rest,
        **groups,
        "securityContext": _rights(pod.get("securityContext", {}), OPEN),
        "volumes": [{"name": name, **each} for name, each in volumes.items() if name not in mounted],
        **_priority(pod),
        "serviceAccountName": pod.get("serviceAccountName") or account or "default",
        "terminationGracePeriodSeconds": pod.get("terminationGracePeriodSeconds", 30),
    }


def differences(before: Object, after: Object) -> tuple[str, ...]:
    """Each field that says otherwise, or that only one of the two has; in words that hold no secret."""
    found = list(changes(before, after))
    paths = [each.path for each in found]
    gone = [Change(each.path, each.after) for each in changes(after, before) if not _told(each.path, paths)]
    told = sorted((*found, *gone), key=lambda each: each.path)
    return tuple(_words(each) for each in told if each.before not in _NOTHING or each.after not in _NOTHING)


_GROUPS = ("containers", "initContainers")
_APART = {*_GROUPS, "volumes", "priorityClassName", "serviceAccount", "securityContext"}
_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _told(path: str, paths: list[str]) -> bool:
    return any(each == path or path.startswith(f"{each}.") or each.startswith(f"{path}.") for each in paths)


def _words(change: Change) -> str:
    old, new = ("" if each in _NOTHING else shortened(each) for each in (change.before, change.after))
    path = change.path.replace("containers.", "container ", 1) if change.path.startswith("containers.") else change.path
    return masked(f"{path}: {old or 'none'} -> {new or 'none'}")


def _theirs(labels: Mapping[str, str]) -> Object:
    return {name: value for name, value in labels.items() if not name.startswith(f"{GROUP}/")}


def _priority(pod: Object) -> Object:
    """A tier is one of ours; nobody's is the usual one."""
    name = pod.get("priorityClassName", "")
    return {} if not name or name == f"{PRIORITY}on-demand" else {"priorityClassName": name}


def _container(container: Object, volumes: Mapping[str, Object]) -> Object:
    mounts = [_mount(each, volumes) for each in container.get("volumeMounts", ())]
    rest = {field: each for field, each in container.items() if field != "ports"}
    return {
        **rest,
        **{probe: _numbered(rest[probe], container) for probe in PROBES if probe in rest},
        # Ours keeps the last lines, which changes nothing for the program.
        "terminationMessagePolicy": "File",
        # What is not named is reached all the same: who leads there by name is looked at elsewhere.
        "ports": [each for each in container.get("ports", ()) if "hostPort" in each],
        "volumeMounts": mounts,
        "env": list(_variables(container.get("env", ()))),
        "resources": _resources(container.get("resources", {})),
        "securityContext": _rights(container.get("securityContext", {}), OPEN_CONTAINER),
    }


def _numbered(probe: Object, container: Object) -> Object:
    """A port by its name is the same port."""
    numbers = {each.get("name"): each["containerPort"] for each in container.get("ports", ())}
    asked = {how: probe[how] for how in ("httpGet", "tcpSocket") if how in probe}
    return {**probe, **{how: {**each, "port": numbers.get(each["port"], each["port"])} for how, each in asked.items()}}


def _mount(mount: Object, volumes: Mapping[str, Object]) -> Object:
    volume = volumes.get(mount["name"], {})
    # Nobody can write there anyway.
    fixed = {"readOnly"} if volume.keys() & {"configMap", "secret", "downwardAPI", "projected"} else set()
    return {**{field: each for field, each in mount.items() if field not in {"name", *fixed}}, "volume": volume}


def _content(volume: Object, files: Files) -> Object:
    rest = {field: each for field, each in volume.items() if field != "name"}
    source = rest.get("configMap")
    known = files.get(source["name"]) if source else None
    if source and known is not None:
        said = {field: each for field, each in source.items() if field != "name"}
        rest["configMap"] = {**said, "files": digest([known.get("data", {}), known.get("binaryData", {})])}
    return rest


def _variables(entries: list[Object]) -> Iterator[Object]:
    """The last of several wins; their order matters only where one refers to another."""
    last = {each["name"]: each for each in entries}
    ordered = [last[each] for each in last]
    return iter(ordered if any(refers(each) for each in ordered) else sorted(ordered, key=lambda each: each["name"]))


def refers(variable: Object) -> bool:
    return "$(" in variable.get("value", "")


def _resources(resources: Object) -> Object:
    """What is limited and not asked for is asked for as well."""
    limits = resources.get("limits", {})
    said = {**resources, "requests": {**limits, **resources.get("requests", {})}, "limits": limits}
    return {
        field: {name: _spelled(amount(value)) for name, value in each.items()}
        if field in {"requests", "limits"}
        else each
        for field, each in said.items()
    }


def _spelled(found: Fraction) -> str:
    for unit, size in (("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024)):
        if found and found % size == 0:
            return f"{found // size}{unit}"
    return str(found) if found.denominator == 1 else f"{float(found * 1000):g}m"


def _rights(rights: Object, granted: Object) -> Object:
    return {field: each for field, each in rights.items() if each != granted.get(field)}
