"""Many running pods in a real API server, with the fields that Kubernetes sets on one."""

from __future__ import annotations

from bench.peers.convergence import together
from pincompute.api.names import PROJECT_LABEL, WANTED_HASH_ANNOTATION, WORKLOAD_LABEL
from pincompute.kube.client import Client
from pincompute.kube.resource import NAMESPACES, PODS
from pincompute.objects.content import Object

NAMESPACE = "pods"
_TIME = "2026-01-31T12:00:00Z"
_CREATOR, _REPORTER = "kube-controller-manager", "kubelet"
"""The real field managers, as managedFields are a third of a pod."""


async def fill_with_pods(client: Client, count: int) -> None:
    await client.apply({"metadata": {"name": NAMESPACE}}, NAMESPACES, manager=_CREATOR)
    await together(add_pod(client, number) for number in range(count))


async def add_pod(client: Client, number: int) -> None:
    """Creates a pod, and reports it as running."""
    created = await client.create(PODS, pod(number), manager=_CREATOR)
    await client.replace({**created, "status": pod_status(number)}, PODS, manager=_REPORTER, subresource="status")


def pod(number: int) -> Object:
    """One container of a service with three replicas, on one of 300 nodes."""
    service = f"web-{number // 3}"
    labels = {PROJECT_LABEL: NAMESPACE, WORKLOAD_LABEL: service, "pod-template-hash": "6bd9f5b7c8"}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{service}-6bd9f5b7c8",
        "uid": f"00000000-0000-0000-0000-{number // 3:012}",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _name(number),
            "generateName": f"{service}-6bd9f5b7c8-",
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {WANTED_HASH_ANNOTATION: f"{number:012x}"},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": f"node-{number % 300}",
            "volumes": [_token_volume()],
            "containers": [_container(number)],
            "terminationGracePeriodSeconds": 30,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "serviceAccountName": service,
        },
    }


def _name(number: int) -> str:
    return f"web-{number // 3}-6bd9f5b7c8-{number % 3:05}"


def _image(number: int) -> str:
    return f"registry.example/web@sha256:{number:064x}"


def _token_volume() -> Object:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": sources}}


def _container(number: int) -> Object:
    return {
        "name": "web",
        "image": _image(number),
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": f"SETTING_{index}", "value": f"the value of setting {index}"} for index in range(6)],
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        ],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 5},
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False},
    }


def pod_status(number: int) -> Object:
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    address = f"10.1.{number // 250 % 250}.{number % 250 + 1}"
    container = {
        "name": "web",
        "state": {"running": {"startedAt": _TIME}},
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": _image(number),
        "imageID": _image(number),
        "containerID": f"containerd://{number:064x}",
    }
    return {
        "phase": "Running",
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": _TIME} for each in types],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _TIME,
        "containerStatuses": [container],
        "qosClass": "Burstable",
    }
