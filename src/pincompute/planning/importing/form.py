"""The short form of a pod template: what it has a word for is said in it, and the rest stays a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pincompute.api.names import PRIORITY
from pincompute.api.serving import HealthCheck, Port, Shutdown
from pincompute.api.workload import MAX_CONFIGURATION, OUR_VARIABLES, Tier
from pincompute.objects.content import Object
from pincompute.objects.defaults import plain, pull_policy
from pincompute.planning.importing.effect import OPEN, OPEN_CONTAINER, Files, refers
from pincompute.planning.importing.traffic import Traffic
from pincompute.planning.pods.container import SAFE, SAFE_CONTAINER, amounts
from pincompute.planning.pods.pod import GPU, LEAST_CPU, LEAST_MEMORY, default_pull_policy
from pincompute.planning.serving import container_ports

_DECIDED = ("serviceAccountName", "priorityClassName", "priority", "preemptionPolicy")
_GIVEN_TO_ALL = ("enableServiceLinks", "automountServiceAccountToken")
"""What Kubernetes gives to every pod, and we only to those who ask."""
_ENTRIES = 256
_LIFTED = {"command": "command", "args": "arguments"}


def spoken(template: Object, name: str, traffic: Traffic, files: Files) -> Object:
    """Fields of the spec, and under `template` what is left; nothing of the template's is left unsaid."""
    found = plain(template)
    pod: Object = found["spec"]
    containers: list[Object] = pod["containers"]
    main = _main(containers, name, traffic.container)
    spec: Object = {"port": traffic.port, "ports": list(traffic.ports), **_tier(pod)}
    balancer = {**traffic.load_balancer}
    rest = {field: each for field, each in pod.items() if field not in {*_DECIDED, *_GIVEN_TO_ALL}}
    _share(rest, main, spec, files)
    left = _named(_lift(main, spec, balancer, traffic), spec, name)
    beside = [_beside(each) for each in containers if each is not main]
    rest["containers"] = [*([left] if left else []), *beside]
    if "initContainers" in rest:
        rest["initContainers"] = [_beside(each) for each in rest["initContainers"]]
    _end(rest, main, spec)
    rest |= _open(pod)
    spec |= {"loadBalancer": balancer, "template": _given({"metadata": found["metadata"], "spec": _given(rest)})}
    return spec


def _main(containers: Sequence[Object], name: str, listening: str) -> Object:
    """The one that is called as the workload, or that listens, or the first."""
    for wanted in (name, listening):
        for each in containers:
            if each["name"] == wanted:
                return each
    return containers[0]


def _tier(pod: Object) -> Object:
    name = str(pod.get("priorityClassName", "")).removeprefix(PRIORITY)
    return {"tier": name} if name in set(Tier) - {Tier.ON_DEMAND} else {}


def _named(left: Object, spec: Object, name: str) -> Object:
    """The short form's own container bears the workload's name; of another name it stays the template's."""
    if left["name"] != name:
        return left
    spec["image"] = left["image"]
    rest = {field: each for field, each in left.items() if field != "image"}
    return rest if rest.keys() - {"name"} else {}


def _lift(main: Object, spec: Object, balancer: Object, traffic: Traffic) -> Object:
    left = {field: each for field, each in main.items() if field not in {"ports", "imagePullPolicy", *_LIFTED}}
    spec |= {ours: main[theirs] for theirs, ours in _LIFTED.items() if theirs in main}
    left |= _ports(main, traffic) | _policy(main, default_pull_policy(main["image"])) | _rights(main)
    left["env"] = _variables(main, spec)
    left["resources"] = _resources(main.get("resources", {}), spec)
    check = _check(main, traffic.port)
    if check is not None:
        del left["readinessProbe"]
        if check:
            balancer["healthCheck"] = check
    return _given(left)


def _beside(container: Object) -> Object:
    left = {field: each for field, each in container.items() if field != "imagePullPolicy"}
    left |= _policy(container, pull_policy(container["image"])) | _rights(container)
    left["env"] = _theirs(container.get("env", []))
    return _given(left)


def _given(fields: Object) -> Object:
    """An empty list of ports says something: none has a name."""
    return {field: each for field, each in fields.items() if each not in ([], {}) or field == "ports"}


def _ports(main: Object, traffic: Traffic) -> Object:
    """As they are called now: its Service leads to copies that run already by the same names."""
    theirs = main.get("ports", [])
    others = [msgspec.convert(each, Port) for each in traffic.ports]
    if _told_apart(theirs) == _told_apart(container_ports(traffic.port, others)):
        return {}
    return {"ports": theirs} if theirs or traffic.service else {}


def _told_apart(ports: Sequence[Object]) -> list[tuple[str, int, str, int]]:
    return sorted(
        (each.get("name", ""), each["containerPort"], each.get("protocol", "TCP"), each.get("hostPort", 0))
        for each in ports
    )


def _policy(container: Object, ours: str) -> Object:
    policy = container.get("imagePullPolicy", pull_policy(container["image"]))
    return {} if policy == ours else {"imagePullPolicy": policy}


def _rights(container: Object) -> Object:
    """As they are: where nobody says a word, Kubernetes gives more than we do."""
    said = {**OPEN_CONTAINER, **container.get("securityContext", {})}
    if said.get("privileged") or "SYS_ADMIN" in said["capabilities"].get("add", ()):
        said.pop("allowPrivilegeEscalation")
    return {"securityContext": {field: each for field, each in said.items() if each != SAFE_CONTAINER.get(field)}}


def _theirs(variables: Sequence[Object]) -> list[Object]:
    """The last of several wins; what the platform sets itself is told by the comparison."""
    last = {each["name"]: each for each in variables}
    return [each for name, each in last.items() if not is_ours(name)]


def is_ours(variable: str) -> bool:
    return variable == "PORT" or variable.startswith(OUR_VARIABLES)


def _variables(main: Object, spec: Object) -> list[Object]:
    """Those that refer to none are a plain list of names and values."""
    variables = _theirs(main.get("env", []))
    plain_ones = [each for each in variables if "valueFrom" not in each]
    if any(refers(each) for each in variables) or len(plain_ones) > _ENTRIES:
        return variables
    spec["environment"] = {each["name"]: each.get("value", "") for each in plain_ones}
    return [each for each in variables if "valueFrom" in each]


def _resources(resources: Object, spec: Object) -> Object:
    """Two words, where it is asked for as much as ours would be; what we add is told by the comparison."""
    limits = dict(resources.get("limits", {}))
    requests = {**limits, **resources.get("requests", {})}
    rest = resources.keys() - {"requests", "limits"}
    gpus = limits.get(GPU)
    short: Object = {
        "cpu": requests.get("cpu", ""),
        "memory": requests.get("memory", limits.get("memory", "")),
        "gpus": int(gpus) if gpus else 0,
    }
    said = amounts({}, short["cpu"] or LEAST_CPU, short["memory"] or LEAST_MEMORY)
    if gpus:
        said = {field: {**each, GPU: gpus} for field, each in said.items()}
    for field, each in (("requests", requests), ("limits", limits)):
        if rest or not each.items() <= said[field].items():
            return resources
    spec |= {field: each for field, each in short.items() if each}
    return {}


def _check(main: Object, port: int) -> Object | None:
    """As a health check, where it is one; nothing where it has to stay as it is."""
    probe: Object = main.get("readinessProbe", {})
    handler = probe.get("httpGet") or probe.get("tcpSocket") or {}
    numbers = {each.get("name"): each["containerPort"] for each in main.get("ports", ()) if each.get("name")}
    asked = handler.get("port")
    usual = probe.keys() <= {"httpGet", "tcpSocket", "periodSeconds", "failureThreshold"}
    if not usual or numbers.get(asked, asked) != port or handler.keys() - {"path", "port"}:
        return None
    path = handler.get("path", "/") if "httpGet" in probe else ""
    seconds, failures = probe.get("periodSeconds", 10), probe.get("failureThreshold", 3)
    if not (seconds <= 300 and failures <= 60 and (not path or path.startswith("/"))):
        return None
    said, usual_one = {"path": path, "seconds": seconds, "failures": failures}, HealthCheck()
    return {field: each for field, each in said.items() if each != getattr(usual_one, field)}


def _share(rest: Object, main: Object, spec: Object, files: Files) -> None:
    """One ConfigMap that only the program sees, as a folder: its files become the file's own."""
    mounts: list[Object] = main.get("volumeMounts", [])
    others = [
        each["name"]
        for group in ("containers", "initContainers")
        for one in rest.get(group, ())
        if one is not main
        for each in one.get("volumeMounts", ())
    ]
    for volume in rest.get("volumes", ()):
        source, name = volume.get("configMap", {}), volume["name"]
        seen = [each for each in mounts if each["name"] == name]
        known = files.get(source.get("name", ""), {})
        if source.keys() != {"name"} or name in others or len(seen) != 1 or not _folds(seen[0], known):
            continue
        spec |= {"configuration": known["data"], "configurationPath": seen[0]["mountPath"]}
        rest["volumes"] = [each for each in rest["volumes"] if each is not volume]
        main["volumeMounts"] = [each for each in mounts if each is not seen[0]]
        return


def _folds(mount: Object, known: Mapping[str, Any]) -> bool:
    data = known.get("data") or {}
    size = sum(len(each.encode()) for each in data.values())
    plain_mount = mount.keys() <= {"name", "mountPath", "readOnly"} and ":" not in mount["mountPath"]
    return bool(data) and plain_mount and not known.get("binaryData") and size <= min(MAX_CONFIGURATION, 1 << 16)


def _end(rest: Object, main: Object, spec: Object) -> None:
    """The time it has to end by itself; what it does before is its own, or ours."""
    seconds = rest.get("terminationGracePeriodSeconds", 30)
    if "lifecycle" in main:
        rest["terminationGracePeriodSeconds"] = seconds
    elif seconds != Shutdown().grace_seconds and 1 <= seconds <= 3600:
        rest.pop("terminationGracePeriodSeconds", None)
        spec["shutdown"] = {"graceSeconds": seconds}


def _open(pod: Object) -> Object:
    """Where nobody says a word, Kubernetes gives more than we do."""
    said = {**OPEN, **pod.get("securityContext", {})}
    usual = SAFE | ({"runAsNonRoot": False} if said.get("runAsUser") == 0 else {})
    rights = {field: each for field, each in said.items() if each != usual.get(field)}
    return {**{field: True for field in _GIVEN_TO_ALL if pod.get(field, True)}, "securityContext": rights}
