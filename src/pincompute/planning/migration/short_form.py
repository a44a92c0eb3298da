"""Short form of a pod template: fields with a word in the workload file become that word, the rest stays a template.

Nothing of the template is dropped silently. Where Kubernetes' defaults differ from those of the platform, Kubernetes'
default is written out, so that the program keeps the settings with which it has been running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import PRIORITY_CLASS_PREFIX
from pincompute.api.serving import HTTP_PORT_NAME, HealthCheck, Port, Shutdown
from pincompute.api.workload import MAX_CONFIGURATION_BYTES, RESERVED_VARIABLE_PREFIX, Tier
from pincompute.objects.content import Object
from pincompute.objects.defaults import implicit_pull_policy, strip_pod_defaults
from pincompute.planning.kinds.serving import container_ports
from pincompute.planning.migration.effective_template import (
    KUBERNETES_CONTAINER_SECURITY,
    KUBERNETES_POD_FEATURES,
    KUBERNETES_POD_SECURITY,
    ConfigMapsByName,
    references_variable,
)
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.pods.container import (
    CONTAINER_SECURITY_DEFAULTS,
    POD_SECURITY_DEFAULTS,
    with_resource_defaults,
)
from pincompute.planning.pods.pod import DEFAULT_CPU, DEFAULT_MEMORY, GPU_RESOURCE, default_pull_policy

_SET_BY_PLATFORM = (
    "serviceAccountName",
    "serviceAccount",
    "restartPolicy",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)
_MAX_ENVIRONMENT_ENTRIES = 256
_MAX_IMPORTED_CONFIGURATION_BYTES = 1 << 16
"""A larger ConfigMap would make the file unreadable, and stays a ConfigMap."""
_RENAMED_FIELDS = {"command": "command", "args": "arguments"}


class PodForm(NamedTuple):
    """What the short form of a kind has beside the fields that all kinds share."""

    main_port: str = ""
    """Name of the main port in the container; empty for kinds without a port."""
    health_check: str = ""
    """Field with the health check; empty for kinds without one."""
    has_shutdown: bool = False


SERVICE_FORM = PodForm(HTTP_PORT_NAME, "loadBalancer", has_shutdown=True)


def short_form_spec(
    template: Object, name: str, traffic: Traffic, files: ConfigMapsByName, form: PodForm = SERVICE_FORM
) -> Object:
    """Fields of the workload's spec; `template` has what they cannot represent."""
    stripped = strip_pod_defaults(template)
    pod: Object = stripped["spec"]
    containers: list[Object] = pod["containers"]
    main = choose_main_container(containers, name, traffic.container)
    spec: Object = {"port": traffic.port or None, "ports": list(traffic.ports), **_tier_field(pod)}
    load_balancer = {**traffic.load_balancer} if traffic.port else {}
    handled = {*_SET_BY_PLATFORM, *KUBERNETES_POD_FEATURES}
    rest = {field: value for field, value in pod.items() if field not in handled}
    _move_configuration(rest, main, spec, files)
    check: Object = {}
    left = _move_image(_move_container_fields(main, spec, check, traffic, form), spec, name)
    others = [_other_container(each) for each in containers if each is not main]
    rest["containers"] = [*([left] if left else []), *others]
    if "initContainers" in rest:
        rest["initContainers"] = [_other_container(each) for each in rest["initContainers"]]
    if form.has_shutdown:
        _move_grace_period(rest, main, spec)
    if check and form.health_check == "loadBalancer":
        load_balancer["healthCheck"] = check
    elif check:
        spec[form.health_check] = check
    rest |= _explicit_pod_defaults(pod)
    template_left = _without_empty({"metadata": stripped["metadata"], "spec": _without_empty(rest)})
    spec |= {"loadBalancer": load_balancer, "template": template_left}
    return spec


def explicit_template(template: Object) -> Object:
    """The whole template without defaults of Kubernetes, except for those that the platform does not share."""
    stripped = strip_pod_defaults(template)
    pod: Object = stripped["spec"]
    handled = {*_SET_BY_PLATFORM, *KUBERNETES_POD_FEATURES}
    rest = {field: value for field, value in pod.items() if field not in handled}
    main, *others = rest["containers"]
    rest["containers"] = [_other_container(main, default_pull_policy(main["image"])), *map(_other_container, others)]
    if "initContainers" in rest:
        rest["initContainers"] = [_other_container(each) for each in rest["initContainers"]]
    rest |= _explicit_pod_defaults(pod)
    return _without_empty({"metadata": stripped["metadata"], "spec": _without_empty(rest)})


def choose_main_container(containers: Sequence[Object], name: str, listening: str) -> Object:
    """The container with the name of the workload, else the one that listens on its port, else the first."""
    for wanted in (name, listening):
        for container in containers:
            if container["name"] == wanted:
                return container
    return containers[0]


def _tier_field(pod: Object) -> Object:
    name = str(pod.get("priorityClassName", "")).removeprefix(PRIORITY_CLASS_PREFIX)
    return {"tier": name} if name in set(Tier) - {Tier.ON_DEMAND} else {}


def _move_image(left: Object, spec: Object, name: str) -> Object:
    """Moves the image to the spec if the container has the workload's name, as the short form's container does.

    A container of another name stays in the template.
    """
    if left["name"] != name:
        return left
    spec["image"] = left["image"]
    rest = {field: value for field, value in left.items() if field != "image"}
    return rest if rest.keys() - {"name"} else {}


def _move_container_fields(main: Object, spec: Object, health_check: Object, traffic: Traffic, form: PodForm) -> Object:
    """Moves fields of the main container to the spec, and returns the container with the others."""
    left = {
        field: value for field, value in main.items() if field not in {"ports", "imagePullPolicy", *_RENAMED_FIELDS}
    }
    spec |= {ours: main[theirs] for theirs, ours in _RENAMED_FIELDS.items() if theirs in main}
    left |= _explicit_ports(main, traffic, form.main_port) | _explicit_pull_policy(
        main, default_pull_policy(main["image"])
    )
    left |= _explicit_security_context(main)
    left["env"] = _move_variables(main, spec)
    left["resources"] = _move_resources(main.get("resources", {}), spec)
    check = _health_check(main, traffic.port)
    if check is not None:
        del left["readinessProbe"]
        health_check |= check
    return _without_empty(left)


def _other_container(container: Object, generated_policy: str = "") -> Object:
    left = {field: value for field, value in container.items() if field != "imagePullPolicy"}
    left |= _explicit_pull_policy(container, generated_policy or implicit_pull_policy(container["image"]))
    left |= _explicit_security_context(container)
    left["env"] = _user_variables(container.get("env", []))
    return _without_empty(left)


def _without_empty(fields: Object) -> Object:
    """Drops empty values, except for ports: an empty list means that no port has a name."""
    return {field: value for field, value in fields.items() if value not in ([], {}) or field == "ports"}


def _explicit_ports(main: Object, traffic: Traffic, main_port: str) -> Object:
    """The container ports if the generated ones would differ: a Service may refer to them by name.

    Without a name and a port of the node, a container port is information only.
    """
    present = main.get("ports", [])
    if not traffic.port:
        return {"ports": present} if any(each.keys() & {"name", "hostPort"} for each in present) else {}
    further = [msgspec.convert(each, Port) for each in traffic.ports]
    if _comparable_ports(present) == _comparable_ports(container_ports(traffic.port, further, main_port)):
        return {}
    return {"ports": present} if present or traffic.service else {}


def _comparable_ports(ports: Sequence[Object]) -> list[tuple[str, int, str, int]]:
    return sorted(
        (port.get("name", ""), port["containerPort"], port.get("protocol", "TCP"), port.get("hostPort", 0))
        for port in ports
    )


def _explicit_pull_policy(container: Object, generated: str) -> Object:
    policy = container.get("imagePullPolicy", implicit_pull_policy(container["image"]))
    return {} if policy == generated else {"imagePullPolicy": policy}


def _explicit_security_context(container: Object) -> Object:
    """The security context with Kubernetes' defaults, which permit more than those of the platform."""
    context = {**KUBERNETES_CONTAINER_SECURITY, **container.get("securityContext", {})}
    if context.get("privileged") or "SYS_ADMIN" in context["capabilities"].get("add", ()):
        # Kubernetes rejects the field in such containers, for which it is always true.
        context.pop("allowPrivilegeEscalation")
    differing = {field: value for field, value in context.items() if value != CONTAINER_SECURITY_DEFAULTS.get(field)}
    return {"securityContext": differing}


def _user_variables(variables: Sequence[Object]) -> list[Object]:
    """The last entry of each name, without those that the platform sets; the comparison reports these."""
    last = {each["name"]: each for each in variables}
    return [variable for name, variable in last.items() if not is_platform_variable(name)]


def is_platform_variable(variable: str) -> bool:
    return variable == "PORT" or variable.startswith(RESERVED_VARIABLE_PREFIX)


def _move_variables(main: Object, spec: Object) -> list[Object]:
    """Moves plain variables to `environment`, unless one refers to another: that has no order."""
    variables = _user_variables(main.get("env", []))
    plain = [each for each in variables if "valueFrom" not in each]
    if any(references_variable(each) for each in variables) or len(plain) > _MAX_ENVIRONMENT_ENTRIES:
        return variables
    spec["environment"] = {each["name"]: each.get("value", "") for each in plain}
    return [each for each in variables if "valueFrom" in each]


def _move_resources(resources: Object, spec: Object) -> Object:
    """Moves the resources to the spec if the platform would generate at least the same from them.

    The comparison reports what it adds. Other resources are returned unchanged, for the template.
    """
    limits = dict(resources.get("limits", {}))
    requests = {**limits, **resources.get("requests", {})}
    has_other_fields = resources.keys() - {"requests", "limits"}
    gpus = limits.get(GPU_RESOURCE)
    short_form: Object = {
        "cpu": requests.get("cpu", ""),
        "memory": requests.get("memory", limits.get("memory", "")),
        "gpus": int(gpus) if gpus else 0,
    }
    generated = with_resource_defaults({}, short_form["cpu"] or DEFAULT_CPU, short_form["memory"] or DEFAULT_MEMORY)
    if gpus:
        generated = {field: {**amounts, GPU_RESOURCE: gpus} for field, amounts in generated.items()}
    for field, amounts in (("requests", requests), ("limits", limits)):
        if has_other_fields or not amounts.items() <= generated[field].items():
            return resources
    spec |= {field: amount for field, amount in short_form.items() if amount}
    return {}


def _health_check(main: Object, port: int) -> Object | None:
    """The readiness probe as a health check; None if the health check cannot represent it, and without a port."""
    if not port:
        return None
    probe: Object = main.get("readinessProbe", {})
    handler = probe.get("httpGet") or probe.get("tcpSocket") or {}
    numbers = {each.get("name"): each["containerPort"] for each in main.get("ports", ()) if each.get("name")}
    probed = handler.get("port")
    is_representable = probe.keys() <= {"httpGet", "tcpSocket", "periodSeconds", "failureThreshold"}
    if not is_representable or numbers.get(probed, probed) != port or handler.keys() - {"path", "port"}:
        return None
    path = handler.get("path", "/") if "httpGet" in probe else ""
    seconds, failures = probe.get("periodSeconds", 10), probe.get("failureThreshold", 3)
    if not (seconds <= 300 and failures <= 60 and (not path or path.startswith("/"))):
        return None
    check, default = {"path": path, "seconds": seconds, "failures": failures}, HealthCheck()
    return {field: value for field, value in check.items() if value != getattr(default, field)}


def _move_configuration(rest: Object, main: Object, spec: Object, files: ConfigMapsByName) -> None:
    """Moves the files of one ConfigMap to the spec, if only the main container mounts it, as a directory."""
    mounts: list[Object] = main.get("volumeMounts", [])
    mounted_by_others = [
        mount["name"]
        for group in ("containers", "initContainers")
        for container in rest.get(group, ())
        if container is not main
        for mount in container.get("volumeMounts", ())
    ]
    for volume in rest.get("volumes", ()):
        source, name = volume.get("configMap", {}), volume["name"]
        own_mounts = [mount for mount in mounts if mount["name"] == name]
        config_map = files.get(source.get("name", ""), {})
        is_plain_source = source.keys() == {"name"}
        if not is_plain_source or name in mounted_by_others or len(own_mounts) != 1:
            continue
        (mount,) = own_mounts
        if not _can_move_files(mount, config_map):
            continue
        spec |= {"configuration": config_map["data"], "configurationPath": mount["mountPath"]}
        rest["volumes"] = [each for each in rest["volumes"] if each is not volume]
        main["volumeMounts"] = [each for each in mounts if each is not mount]
        return


def _can_move_files(mount: Object, config_map: Mapping[str, Any]) -> bool:
    data = config_map.get("data") or {}
    size = sum(len(each.encode()) for each in data.values())
    is_plain_mount = mount.keys() <= {"name", "mountPath", "readOnly"} and ":" not in mount["mountPath"]
    max_size = min(MAX_CONFIGURATION_BYTES, _MAX_IMPORTED_CONFIGURATION_BYTES)
    return bool(data) and is_plain_mount and not config_map.get("binaryData") and size <= max_size


def _move_grace_period(rest: Object, main: Object, spec: Object) -> None:
    """Moves the termination grace period to the spec. With a lifecycle hook of its own, the container keeps both."""
    seconds = rest.get("terminationGracePeriodSeconds", 30)
    if "lifecycle" in main:
        rest["terminationGracePeriodSeconds"] = seconds
    elif seconds != Shutdown().grace_seconds and 1 <= seconds <= 3600:
        rest.pop("terminationGracePeriodSeconds", None)
        spec["shutdown"] = {"graceSeconds": seconds}


def _explicit_pod_defaults(pod: Object) -> Object:
    """Kubernetes' defaults of the pod, which permit more than those of the platform."""
    context = {**KUBERNETES_POD_SECURITY, **pod.get("securityContext", {})}
    generated = POD_SECURITY_DEFAULTS | ({"runAsNonRoot": False} if context.get("runAsUser") == 0 else {})
    differing = {field: value for field, value in context.items() if value != generated.get(field)}
    features = {field: True for field in KUBERNETES_POD_FEATURES if pod.get(field, True)}
    return {**features, "securityContext": differing}
