"""What Kubernetes takes for granted in a pod template: without it, two that mean the same look the same."""

from __future__ import annotations

from typing import Any

from pincompute.objects.content import Object
from pincompute.objects.image import parse

_POD: Object = {
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
_CONTAINER: Object = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "stdin": False,
    "stdinOnce": False,
    "tty": False,
}
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE: Object = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HANDLERS: dict[str, Object] = {"httpGet": {"scheme": "HTTP"}, "tcpSocket": {}, "grpc": {"service": ""}, "exec": {}}
_MOUNT: Object = {"readOnly": False}
_MODES = ("configMap", "secret", "downwardAPI", "projected")
_MODE = {"defaultMode": 0o644, "optional": False}
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""When somebody last restarted it, which nobody needs to know who makes its pods anew."""


def plain(template: Object) -> Object:
    """The template, and nothing in it that would be so without a word."""
    metadata, spec = template.get("metadata", {}), template.get("spec", {})
    annotations = {name: value for name, value in metadata.get("annotations", {}).items() if name != _RESTARTED}
    return {
        "metadata": _said({"labels": metadata.get("labels", {}), "annotations": annotations}),
        "spec": _said(
            {
                **spec,
                "containers": [_container(each) for each in spec.get("containers", ())],
                "initContainers": [_container(each) for each in spec.get("initContainers", ())],
                "volumes": [_volume(each) for each in spec.get("volumes", ())],
            },
            # It says the same once more, for those who knew no other.
            {**_POD, "serviceAccount": spec.get("serviceAccountName")},
        ),
    }


def pull_policy(image: str) -> str:
    """When an image is looked for, where nobody says."""
    try:
        found = parse(image)
    except ValueError:
        return "IfNotPresent"
    return "Always" if found.tag == "latest" and not found.digest else "IfNotPresent"


def _said(value: Object, granted: Object | None = None) -> Object:
    known = granted or {}
    return {
        field: each
        for field, each in value.items()
        if each not in (None, "", [], {}) and not (field in known and each == known[field])
    }


def _container(container: Object) -> Object:
    granted = {**_CONTAINER, "imagePullPolicy": pull_policy(container.get("image", ""))}
    probes = {name: _probe(container[name]) for name in PROBES if container.get(name)}
    return _said(
        {
            **container,
            **probes,
            "ports": [_said(each, {"protocol": "TCP"}) for each in container.get("ports", ())],
            "env": [_variable(each) for each in container.get("env", ())],
            "volumeMounts": [_said(each, _MOUNT) for each in container.get("volumeMounts", ())],
            "resources": _said(container.get("resources", {})),
        },
        granted,
    )


def _probe(probe: Object) -> Object:
    handlers = {name: _said(probe[name], granted) for name, granted in _HANDLERS.items() if name in probe}
    return _said({**probe, **handlers}, _PROBE)


def _variable(variable: Object) -> Object:
    source = variable.get("valueFrom")
    if source and "fieldRef" in source:
        source = {**source, "fieldRef": _said(source["fieldRef"], {"apiVersion": "v1"})}
    return _said({**variable, "valueFrom": source})


def _volume(volume: Object) -> Object:
    """An empty folder is said by an empty set of fields, which must stay."""
    return {name: _source(name, value) for name, value in volume.items()}


def _source(kind: str, value: Any) -> Any:
    if kind in _MODES and isinstance(value, dict):
        return _said(value, _MODE)
    if kind == "hostPath" and isinstance(value, dict):
        return _said(value, {"type": ""})
    return value
