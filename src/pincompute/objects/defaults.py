"""Removes Kubernetes' default values from a pod template, so that equivalent templates compare equal."""

from __future__ import annotations

from typing import Any

from pincompute.objects.content import Object
from pincompute.objects.image import parse_image

_POD_DEFAULTS: Object = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
    "automountServiceAccountToken": True,
    "hostNetwork": False,
    "hostPID": False,
    "hostIPC": False,
    "hostUsers": True,
    "shareProcessNamespace": False,
    "setHostnameAsFQDN": False,
}
_CONTAINER_DEFAULTS: Object = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "stdin": False,
    "stdinOnce": False,
    "tty": False,
}
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS: Object = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HANDLER_DEFAULTS: dict[str, Object] = {
    "httpGet": {"scheme": "HTTP"},
    "tcpSocket": {},
    "grpc": {"service": ""},
    "exec": {},
}
_MOUNT_DEFAULTS: Object = {"readOnly": False}
_SOURCES_WITH_DEFAULTS = ("configMap", "secret", "downwardAPI", "projected")
_SOURCE_DEFAULTS = {"defaultMode": 0o644, "optional": False}
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
"""Annotation of the last `kubectl rollout restart`. Irrelevant for an import, which creates its own pods."""


def strip_pod_defaults(template: Object) -> Object:
    """The template without values that Kubernetes would set by default."""
    metadata, spec = template.get("metadata", {}), template.get("spec", {})
    annotations = {name: value for name, value in metadata.get("annotations", {}).items() if name != _RESTARTED_AT}
    return {
        "metadata": _without({"labels": metadata.get("labels", {}), "annotations": annotations}),
        "spec": _without(
            {
                **spec,
                "containers": [_container(each) for each in spec.get("containers", ())],
                "initContainers": [_container(each) for each in spec.get("initContainers", ())],
                "volumes": [_volume(each) for each in spec.get("volumes", ())],
            },
            # serviceAccount is a deprecated alias of serviceAccountName.
            {**_POD_DEFAULTS, "serviceAccount": spec.get("serviceAccountName")},
        ),
    }


def implicit_pull_policy(image: str) -> str:
    """Kubernetes' default pull policy of an image."""
    try:
        name = parse_image(image)
    except ValueError:
        return "IfNotPresent"
    return "Always" if name.tag == "latest" and not name.digest else "IfNotPresent"


def _without(value: Object, defaults: Object | None = None) -> Object:
    """Drop empty fields and those with their default value."""
    defaults = defaults or {}
    return {
        field: each
        for field, each in value.items()
        if each not in (None, "", [], {}) and not (field in defaults and each == defaults[field])
    }


def _container(container: Object) -> Object:
    defaults = {**_CONTAINER_DEFAULTS, "imagePullPolicy": implicit_pull_policy(container.get("image", ""))}
    probes = {name: _probe(container[name]) for name in PROBES if container.get(name)}
    return _without(
        {
            **container,
            **probes,
            "ports": [_without(each, {"protocol": "TCP"}) for each in container.get("ports", ())],
            "env": [_variable(each) for each in container.get("env", ())],
            "volumeMounts": [_without(each, _MOUNT_DEFAULTS) for each in container.get("volumeMounts", ())],
            "resources": _without(container.get("resources", {})),
        },
        defaults,
    )


def _probe(probe: Object) -> Object:
    handlers = {name: _without(probe[name], defaults) for name, defaults in _HANDLER_DEFAULTS.items() if name in probe}
    return _without({**probe, **handlers}, _PROBE_DEFAULTS)


def _variable(variable: Object) -> Object:
    source = variable.get("valueFrom")
    if source and "fieldRef" in source:
        source = {**source, "fieldRef": _without(source["fieldRef"], {"apiVersion": "v1"})}
    return _without({**variable, "valueFrom": source})


def _volume(volume: Object) -> Object:
    """An empty volume source, such as `emptyDir: {}`, is meaningful and must be kept."""
    return {name: _source(name, value) for name, value in volume.items()}


def _source(kind: str, value: Any) -> Any:
    if kind in _SOURCES_WITH_DEFAULTS and isinstance(value, dict):
        return _without(value, _SOURCE_DEFAULTS)
    if kind == "hostPath" and isinstance(value, dict):
        return _without(value, {"type": ""})
    return value
