"""Objects and status of a PinterestService as plain dicts, shared by both kopf operators."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
TIER = "on-demand"
WORKLOAD_LABEL = "pinterest.com/workload"


def content_hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def natives(owner: Object, spec: Object, revision: int) -> list[Object]:
    """The objects of a service, without owner references: `kopf.adopt` adds them."""
    return [
        _object(owner, "v1", "ServiceAccount", automountServiceAccountToken=False),
        _service(owner),
        _deployment(owner, spec),
        # Of a single replica, a budget of 25% would protect nothing.
        *([_disruption_budget(owner)] if spec.get("replicas", 1) > 1 else []),
        _ingress(owner),
        _revision_record(owner, spec, revision),
    ]


def next_revision(spec: Object, status: Object) -> int:
    """The number of the present revision: one more than the last, if the content differs."""
    return int(status.get("revision", 0)) + (status.get("content") != content_hash(_revised_fields(spec)))


def wanted_status(owner: Object, spec: Object, revision: int) -> Object:
    metadata, replicas = owner["metadata"], spec.get("replicas", 1)
    ready = "False" if replicas else "True"
    reason = "Progressing" if replicas else "Available"
    so_far = " so far" if replicas else ""
    before = {each["type"]: each for each in owner.get("status", {}).get("conditions", [])}
    conditions = []
    for type_, message in (
        ("Ready", f"0 of {replicas} replicas ready{so_far}"),
        ("Available", "0 replicas of any revision ready"),
    ):
        same = before.get(type_, {}).get("status") == ready
        since = before[type_]["lastTransitionTime"] if same else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        conditions.append(
            {
                "type": type_,
                "status": ready,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since,
                "observedGeneration": metadata["generation"],
            }
        )
    return {
        "observedGeneration": metadata["generation"],
        "conditions": conditions,
        "revision": revision,
        "content": content_hash(_revised_fields(spec)),
        "address": f"http://{_host(owner)}:8080",
        "selector": f"{WORKLOAD_LABEL}={metadata['name']}",
        "progress": {"wanted": replicas} if replicas else {},
    }


def _object(owner: Object, version: str, kind: str, name: str = "", **body: Any) -> Object:
    metadata = owner["metadata"]
    labelled = {
        "name": name or metadata["name"],
        "namespace": metadata["namespace"],
        "labels": _labels(owner),
    }
    return {"apiVersion": version, "kind": kind, "metadata": labelled, **body}


def _labels(owner: Object) -> dict[str, str]:
    return {
        "pinterest.com/project": owner["metadata"]["namespace"],
        WORKLOAD_LABEL: owner["metadata"]["name"],
        "pinterest.com/kind": "PinterestService",
        "pinterest.com/tier": TIER,
    }


def _selector(owner: Object) -> dict[str, str]:
    return {WORKLOAD_LABEL: owner["metadata"]["name"]}


def _host(owner: Object) -> str:
    return f"{owner['metadata']['name']}.{owner['metadata']['namespace']}.localhost"


def _service(owner: Object) -> Object:
    port = {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}
    return _object(owner, "v1", "Service", spec={"selector": _selector(owner), "ports": [port]})


def _deployment(owner: Object, spec: Object) -> Object:
    template = _pod_template(owner, spec)
    template["metadata"]["labels"]["pinterest.com/template"] = content_hash(template)
    return _object(
        owner,
        "apps/v1",
        "Deployment",
        spec={
            "replicas": spec.get("replicas", 1),
            "selector": {"matchLabels": _selector(owner)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 0,
            "template": template,
        },
    )


def _pod_template(owner: Object, spec: Object) -> Object:
    name, port = owner["metadata"]["name"], spec["port"]
    variables = {
        "PIN_PROJECT": owner["metadata"]["namespace"],
        "PIN_WORKLOAD": name,
        "PIN_KIND": "PinterestService",
        "PIN_TIER": TIER,
        "PORT": str(port),
    }
    container = {
        "name": name,
        "image": spec["image"],
        "imagePullPolicy": "Always",
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 2, "failureThreshold": 3},
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
        "env": [{"name": key, "value": value} for key, value in variables.items()],
    }
    return {
        "metadata": {"labels": _labels(owner)},
        "spec": {
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 33,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "serviceAccountName": name,
            "priorityClassName": f"pincompute-{TIER}",
        },
    }


def _disruption_budget(owner: Object) -> Object:
    spec = {
        "selector": {"matchLabels": _selector(owner)},
        "maxUnavailable": "25%",
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return _object(owner, "policy/v1", "PodDisruptionBudget", spec=spec)


def _ingress(owner: Object) -> Object:
    backend = {"service": {"name": owner["metadata"]["name"], "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rules = [{"host": _host(owner), "http": {"paths": [path]}}]
    return _object(owner, "networking.k8s.io/v1", "Ingress", spec={"rules": rules})


def _revised_fields(spec: Object) -> Object:
    return {"image": spec["image"], "port": spec["port"]}


def _revision_record(owner: Object, spec: Object, revision: int) -> Object:
    fields = _revised_fields(spec)
    record = _object(
        owner,
        "v1",
        "ConfigMap",
        f"{owner['metadata']['name']}-{revision}",
        immutable=True,
        data={"spec.json": json.dumps(fields, indent=1)},
    )
    record["metadata"]["annotations"] = {
        "pinterest.com/revision": str(revision),
        "pinterest.com/content": content_hash(fields),
        "pinterest.com/runtime": "0",
    }
    return record
