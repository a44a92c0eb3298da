"""Faults from public lists, which `pin why` was not written for: each with one accepted reason, and its evidence.

They complement the faults of `pin break`, which are part of the product. Each is set up on a platform with simulated
nodes: the API server, the scheduler and the controllers are real, and only programs do not run. A cure is what the
answer says to type; here it is the document that results from following it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bench.fault_catalogue import SERVICE, TargetCluster
from pincompute.api.workload_detail import Diagnosis
from pincompute.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Object, Resource

TIMEOUT_S = 90.0
MANAGER = "another-client"
_FITS = re.compile(r"request at most ([0-9.]+) cpu")


class OutsideFault(NamedTuple):
    name: str
    source: str
    """Where it is described."""
    spec: Mapping[str, Any]
    reason: str
    """The accepted reason."""
    evidence: str
    """Text that the answer must have besides."""
    next: str
    """Start of what it proposes."""
    objects: Sequence[tuple[Resource, Object]] = ()
    """Objects that others have created before."""


class Answer(NamedTuple):
    fault: OutsideFault
    diagnosis: Diagnosis
    seconds: float
    """From the submission to the first answer that reports a problem."""
    cured: bool | None
    """None where the cure is not a change of the file."""

    @property
    def text(self) -> str:
        found = self.diagnosis
        return f"{self.fault.name}: {found.reason}: {found.what}\n{found.note}\nnext: {found.next}"

    @property
    def named(self) -> bool:
        fault, found = self.fault, self.diagnosis
        told = f"{found.what}\n{found.note}"
        return found.reason == fault.reason and fault.evidence in told and found.next.startswith(fault.next)


def _claim(name: str, size: str = "1Gi", **spec: Any) -> tuple[Resource, Object]:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": whole}


def _volume(name: str, storage_class: str, **spec: Any) -> tuple[Resource, Object]:
    whole = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": f"/var/lib/{name}"},
        "storageClassName": storage_class,
        **spec,
    }
    return PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": whole}


def _mounts(claim: str) -> dict[str, Any]:
    return {**SERVICE, "template": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}}


def _pod(**fields: Any) -> dict[str, Any]:
    return {**SERVICE, "template": fields}


_PERSISTENT_VOLUMES = "https://kubernetes.io/docs/concepts/storage/persistent-volumes/"
_ASSIGN = "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/"
OUTSIDE_FAULTS = (
    OutsideFault(
        "scheduling-gate",
        "https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/",
        _pod(schedulingGates=[{"name": "example.com/hold"}]),
        "SchedulingGated",
        "its gate example.com/hold",
        "remove schedulingGates from spec.template",
    ),
    OutsideFault(
        "more-cpu-than-any-node-has",
        "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#troubleshooting",
        {**SERVICE, "cpu": "4000"},
        "Unschedulable",
        "requests 4000 cpu",
        "request at most",
    ),
    OutsideFault(
        "misspelt-node-label",
        _ASSIGN,
        _pod(nodeSelector={"topology.kubernetes.io/zone": "nowhere"}),
        "NoNodeMatches",
        "it requires topology.kubernetes.io/zone=nowhere, and nodes have",
        "",
    ),
    OutsideFault(
        "class-that-does-not-exist",
        _PERSISTENT_VOLUMES,
        _mounts("of-no-class"),
        "ClaimNotBound",
        "claim of-no-class names storage class fats, which does not exist; the only class is",
        "create a claim that can be bound",
        (_claim("of-no-class", storageClassName="fats"),),
    ),
    OutsideFault(
        "access-mode-that-no-volume-has",
        _PERSISTENT_VOLUMES,
        _mounts("shared"),
        "ClaimNotBound",
        "claim shared requires ReadWriteMany, and the free volumes of class of-modes allow ReadWriteOnce",
        "create a claim that can be bound",
        (
            _claim("shared", storageClassName="of-modes", accessModes=["ReadWriteMany"]),
            _volume("of-modes", "of-modes"),
        ),
    ),
    OutsideFault(
        "larger-than-any-volume",
        _PERSISTENT_VOLUMES,
        _mounts("large"),
        "ClaimNotBound",
        "claim large requests 10Gi, and the largest free volume of class of-sizes has 1Gi",
        "create a claim that can be bound",
        (_claim("large", "10Gi", storageClassName="of-sizes"), _volume("of-sizes", "of-sizes")),
    ),
    OutsideFault(
        "claim-that-does-not-exist",
        _PERSISTENT_VOLUMES,
        _mounts("nowhere"),
        "ClaimNotBound",
        "claim nowhere does not exist",
        "",
    ),
)


async def ask_about(cluster: TargetCluster, fault: OutsideFault) -> Answer:
    """Sets the fault up, waits for the first answer that reports a problem, follows it, and cleans up."""
    loop = asyncio.get_running_loop()
    for resource, content in fault.objects:
        namespace = {"namespace": cluster.project} if resource.namespaced else {}
        body = {**content, "metadata": {**content["metadata"], **namespace}}
        await cluster.client.create(resource, body, manager=MANAGER)
    began = loop.time()
    try:
        written = await cluster.write(fault.name, **fault.spec)
        diagnosis = await cluster.wait_for_diagnosis(fault.name, written.generation, wrong=True)
        seconds = loop.time() - began
        return Answer(fault, diagnosis, seconds, await _follow_advice(cluster, fault, diagnosis))
    finally:
        await cluster.workloads.delete(cluster.project, fault.name)
        for resource, content in fault.objects:
            namespace = cluster.project if resource.namespaced else ""
            await cluster.client.delete(resource, content["metadata"]["name"], namespace)


async def _follow_advice(cluster: TargetCluster, fault: OutsideFault, diagnosis: Diagnosis) -> bool | None:
    """Writes the file as the answer says, and tells whether the problem is gone."""
    template = dict(fault.spec.get("template", {}))
    spec = dict(fault.spec)
    if fits := _FITS.match(diagnosis.next):
        spec["cpu"] = fits[1]
    elif removed := re.match(r"remove (\w+) from spec.template", diagnosis.next):
        template.pop(removed[1], None)
        spec["template"] = template
    else:
        return None
    written = await cluster.write(fault.name, **spec)
    after = await cluster.wait_for_diagnosis(fault.name, written.generation, wrong=False)
    return not after.is_problem
