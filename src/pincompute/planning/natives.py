"""One function makes one native; none holds a client."""

from __future__ import annotations

from pincompute.api.names import API_VERSION, PROJECT, SIMULATED, TEMPLATE, WANTED, WORKLOAD
from pincompute.api.service import PinterestService
from pincompute.objects.content import Object, digest
from pincompute.objects.owners import owner_reference
from pincompute.planning.snapshot import Cluster

SERVICE_PORT = 80
"""What clients inside the cluster use, whatever port the program listens on."""
LEAVING_SECONDS = 3
"""A pod that ends goes on answering this long, until every proxy has heard that it leaves."""


def selector(owner: PinterestService) -> dict[str, str]:
    return {WORKLOAD: owner.metadata.name}


def host(owner: PinterestService, cluster: Cluster) -> str:
    return f"{owner.metadata.name}.{owner.metadata.namespace}.{cluster.domain}"


def simulated(owner: PinterestService, cluster: Cluster) -> bool:
    """Because it says so, or because this cluster can do no other."""
    return cluster.simulated or owner.spec.simulated


def service(owner: PinterestService) -> Object:
    spec = {
        "selector": selector(owner),
        "ports": [{"name": "http", "port": SERVICE_PORT, "targetPort": owner.spec.port, "protocol": "TCP"}],
    }
    return _native(owner, "v1", "Service", spec)


def deployment(owner: PinterestService, cluster: Cluster) -> Object:
    template = {"metadata": {"labels": _labels(owner)}, "spec": _pod(owner, cluster)}
    template["metadata"]["labels"][TEMPLATE] = digest(template)
    spec = {
        "replicas": owner.spec.replicas,
        "selector": {"matchLabels": selector(owner)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        "template": template,
    }
    return _native(owner, "apps/v1", "Deployment", spec)


def ingress(owner: PinterestService, cluster: Cluster) -> Object:
    backend = {"service": {"name": owner.metadata.name, "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec = {"rules": [{"host": host(owner, cluster), "http": {"paths": [path]}}]}
    return _native(owner, "networking.k8s.io/v1", "Ingress", spec)


def _pod(owner: PinterestService, cluster: Cluster) -> Object:
    pod: Object = {
        "containers": [_container(owner)],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
    }
    if simulated(owner, cluster):
        pod["tolerations"] = [{"key": SIMULATED, "operator": "Exists", "effect": "NoSchedule"}]
        pod["nodeSelector"] = {SIMULATED: "true"}
    return pod


def _container(owner: PinterestService) -> Object:
    container: Object = {
        "name": owner.metadata.name,
        "image": owner.spec.image,
        "imagePullPolicy": "Always" if _moves(owner.spec.image) else "IfNotPresent",
        "ports": [{"name": "http", "containerPort": owner.spec.port, "protocol": "TCP"}],
        "env": [
            {"name": "PIN_PROJECT", "value": owner.metadata.namespace},
            {"name": "PIN_WORKLOAD", "value": owner.metadata.name},
            {"name": "PORT", "value": str(owner.spec.port)},
            *({"name": name, "value": owner.spec.environment[name]} for name in sorted(owner.spec.environment)),
        ],
        "readinessProbe": {"tcpSocket": {"port": owner.spec.port}, "periodSeconds": 2},
        "lifecycle": {"preStop": {"sleep": {"seconds": LEAVING_SECONDS}}},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if owner.spec.command:
        container["command"] = owner.spec.command
    return container


def _moves(image: str) -> bool:
    """A digest never changes its content; a tag may."""
    return "@sha256:" not in image


def _labels(owner: PinterestService) -> dict[str, str]:
    return {PROJECT: owner.metadata.namespace, WORKLOAD: owner.metadata.name}


def _native(owner: PinterestService, api_version: str, kind: str, spec: Object) -> Object:
    native: Object = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": owner.metadata.name,
            "namespace": owner.metadata.namespace,
            "labels": _labels(owner),
            "ownerReferences": [owner_reference(API_VERSION, owner.kind, owner.metadata.name, owner.metadata.uid)],
        },
        "spec": spec,
    }
    native["metadata"]["annotations"] = {WANTED: digest(native)}
    return native
