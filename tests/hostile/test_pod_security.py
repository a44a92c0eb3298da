"""Pods that the level `restricted` forbids: our check says what the API server says, word for word, and before it."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import NAMESPACES, PODS
from pincompute.planning.pods.pod_security import violations
from polling import until

pytestmark = pytest.mark.cluster

NAMESPACE = "restricted-pods"
SECURE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def container(name: str = "web", context: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "web:1", "securityContext": {**SECURE, **(context or {})}, **fields}


def spec(*containers: dict[str, Any], context: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    whole = {"containers": list(containers) or [container()], "securityContext": {**POD, **(context or {})}}
    return {"automountServiceAccountToken": False, **whole, **fields}


SPECS: dict[str, dict[str, Any]] = {
    "allowed": spec(),
    "no-context": {"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]},
    "not-non-root": spec(context={"runAsNonRoot": False}),
    "not-non-root-of-containers": spec(
        container("a", {"runAsNonRoot": False}), container("b", {"runAsNonRoot": False}), context={"runAsNonRoot": None}
    ),
    "root": spec(context={"runAsUser": 0, "runAsNonRoot": None}),
    "root-of-a-container": spec(container(context={"runAsUser": 0})),
    "host-namespaces": spec(hostNetwork=True, hostPID=True),
    "host-network-with-ports": spec(container(ports=[{"containerPort": 80}, {"containerPort": 443}]), hostNetwork=True),
    "host-ports": spec(
        container("a", ports=[{"containerPort": 80, "hostPort": 8080}]),
        container("b", ports=[{"containerPort": 80, "hostPort": 9090}, {"containerPort": 81}]),
    ),
    "privileged": spec(container(context={"privileged": True, "allowPrivilegeEscalation": True})),
    "escalation-of-an-init-container": spec(initContainers=[container("first", {"allowPrivilegeEscalation": True})]),
    "capabilities": spec(container(context={"capabilities": {"add": ["NET_ADMIN", "NET_BIND_SERVICE", "CHOWN"]}})),
    "capability-beside-all": spec(container(context={"capabilities": {"add": ["SYS_TIME"], "drop": ["ALL"]}})),
    "host-path": spec(volumes=[{"name": "run", "hostPath": {"path": "/run"}}, {"name": "tmp", "emptyDir": {}}]),
    "volumes": spec(
        volumes=[
            {"name": "run", "hostPath": {"path": "/run"}},
            {"name": "share", "nfs": {"server": "nfs", "path": "/"}},
        ]
    ),
    "proc-mount": spec(container(context={"procMount": "Unmasked"}), hostUsers=False),
    "root-in-a-user-namespace": spec(context={"runAsUser": 0, "runAsNonRoot": False}, hostUsers=False),
    "seccomp": spec(context={"seccompProfile": {"type": "Unconfined"}}),
    "seccomp-of-a-container": spec(container(context={"seccompProfile": {"type": "Unconfined"}})),
    "no-seccomp": spec(container("a"), container("b"), context={"seccompProfile": None}),
    "app-armor": spec(container(context={"appArmorProfile": {"type": "Unconfined"}})),
    "selinux": spec(context={"seLinuxOptions": {"type": "spc_t", "user": "u"}}),
    "sysctls": spec(context={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    "probe-host": spec(container(livenessProbe={"tcpSocket": {"host": "10.0.0.1", "port": 80}})),
    "lifecycle-host": spec(
        container(lifecycle={"preStop": {"httpGet": {"host": "10.0.0.1", "port": 80}}}),
        container("b", readinessProbe={"httpGet": {"host": "10.0.0.2", "port": 80}}),
    ),
}


async def test_check_says_what_the_api_server_says(plane: ControlPlane) -> None:
    async with Client(plane.access(), agent="tests") as client:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": labels}}, manager="tests")

        async def enforced() -> bool:
            return bool(await rejection(client, SPECS["host-namespaces"]))

        # The admission plugin sees a new namespace a moment later.
        await until(enforced, within=60)
        found = {name: await rejection(client, each) for name, each in SPECS.items()}
    expected = {name: ", ".join(map(str, violations(each))) for name, each in SPECS.items()}
    assert found == expected
    assert [name for name, text in found.items() if not text] == ["allowed", "root-in-a-user-namespace"]


async def rejection(client: Client, pod_spec: dict[str, Any]) -> str:
    """The rules that the API server names; empty if it accepts the pod. Nothing is stored."""
    pod = {"metadata": {"name": "tried", "namespace": NAMESPACE}, "spec": pod_spec}
    try:
        await client.create(PODS, pod, manager="tests", dry_run=True)
    except Forbidden as refused:
        text = str(refused)
        return text[text.index('restricted:latest": ') :].partition(": ")[2].strip()
    return ""
