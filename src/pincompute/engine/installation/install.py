"""Applies the objects of the platform to a cluster, and waits until its pods are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import groupby

from pincompute.api.names import DESK, INSTALLER, OPERATOR, SYSTEM_NAMESPACE
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.progress import Progress, format_duration
from pincompute.base.reasons import PART_FAILED
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.first_project import ensure_project
from pincompute.engine.installation.cluster_inspection import ClusterState
from pincompute.engine.installation.objects import RESOURCES
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from pincompute.objects.content import object_label

READY_TIMEOUT_S = 180.0
"""Time limit for pulling the image and starting a controller's pods."""
FAILURE_GRACE_S = 20.0
"""How long a pod may fail before the wait is given up: a cause that was fixed just now may show once more."""

# Waiting reasons of containers that do not start without a change.
_FATAL_WAITING_REASONS = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CrashLoopBackOff",
        "CreateContainerConfigError",
    )
)


async def apply_and_wait(client: Client, cluster: ClusterState, wanted: list[Object], progress: Progress) -> None:
    """Apply all objects, wait until their pods are ready, and delete objects of earlier versions."""
    started = client.clock.monotonic()
    # Pods that need a certificate are created after the signer is ready, because the kubelet retries with backoff.
    # The desk with a volume stops before its successor starts, so it is changed when the image is known to be pullable.
    delayed_kinds = {kinds.DAEMON_SETS.kind, kinds.STATEFUL_SETS.kind}
    later = [
        each
        for each in wanted
        if each["kind"] in delayed_kinds or object_label(each) == f"{kinds.DEPLOYMENTS.kind}/{DESK}"
    ]
    first = [each for each in wanted if each not in later]
    await apply_objects(client, first)
    running = [each for each in first if each["kind"] == kinds.DEPLOYMENTS.kind]
    (operator,) = (each for each in running if each["metadata"]["name"] == OPERATOR)
    await _wait_until_ready(client, operator, lambda pods: _has_leader(client, pods))
    progress.echo(f"{await _leader(client)} is leader after {format_duration(client.clock.monotonic() - started)}")
    support = [*(each for each in running if each is not operator), *later]
    await asyncio.gather(*(_wait_until_ready(client, each) for each in support if each not in later))
    await apply_objects(client, later)
    await asyncio.gather(*(_wait_until_ready(client, each) for each in later))
    if support:
        names = ", ".join(each["metadata"]["name"] for each in support)
        progress.echo(f"{names} ready after {format_duration(client.clock.monotonic() - started)}")
    await delete_superfluous(client, cluster, wanted, progress)


async def apply_objects(client: Client, wanted: list[Object]) -> None:
    """Apply objects kind by kind, those of one kind in parallel."""
    for _, together in groupby(wanted, key=lambda each: each["kind"]):
        await asyncio.gather(*(client.apply(each, RESOURCES[each["kind"]], manager=INSTALLER) for each in together))


async def delete_superfluous(client: Client, cluster: ClusterState, wanted: list[Object], progress: Progress) -> None:
    for object_ in superfluous_objects(cluster, wanted):
        await delete_object(client, object_)
        progress.echo(f"{object_label(object_)} deleted: this version does not have it")


async def install_project(client: Client, name: str, look_at: str) -> str:
    """Name of a project that accepts workloads; creates one if there is none."""
    there = sorted(each["metadata"]["name"] for each in (await client.list(CUSTOM_RESOURCES["Project"])).items)
    if there and name not in there:
        name = there[0]
    return await ensure_project(client, next_=look_at, name=name, manager=INSTALLER)


def superfluous_objects(cluster: ClusterState, wanted: list[Object]) -> list[Object]:
    """Objects that an older version created and this one does not have.

    CRDs are kept, because deleting one deletes its objects; namespaces and volume claims, because they hold the desk's
    database.
    """
    named = {object_label(each) for each in wanted}
    kept_kinds = {kinds.CRDS.kind, kinds.NAMESPACES.kind, kinds.PERSISTENT_VOLUME_CLAIMS.kind}
    return [
        each for each in cluster.installed_objects if object_label(each) not in named and each["kind"] not in kept_kinds
    ]


async def delete_object(client: Client, object_: Object) -> None:
    metadata = object_["metadata"]
    resource = RESOURCES[object_["kind"]]
    try:
        await client.delete(resource, metadata["name"], metadata.get("namespace", ""), uid=metadata["uid"])
    except NotFound:
        return


async def _wait_until_ready(
    client: Client, wanted: Object, served: Callable[[list[Object]], Awaitable[bool]] | None = None
) -> None:
    """Wait until all pods of a controller match its template, are available, and satisfy `served`."""
    clock, kind, metadata = client.clock, RESOURCES[wanted["kind"]], wanted["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    started, failing_since = clock.monotonic(), 0.0
    cause = "no pod has been created yet"
    while clock.monotonic() - started < READY_TIMEOUT_S:
        cluster = await client.get(kind, name, namespace)
        listing = await client.list(kinds.PODS, namespace, labels=f"app.kubernetes.io/name={name}")
        pods = [each for each in listing.items if _matches_template(each, wanted)]
        if _observed(cluster) and _COMPLETE[kind.kind](cluster) and (served is None or await served(pods)):
            return
        failure = next(filter(None, map(_failure, pods)), "")
        cause = failure or cause
        failing_since = (failing_since or clock.monotonic()) if failure else 0.0
        if failure and clock.monotonic() - failing_since > FAILURE_GRACE_S:
            break
        await asyncio.sleep(0.5)
    place = Where(object=f"{kind.plural} {namespace}/{name}")
    what = f"pods of {name} are not ready; pods of the previous version keep running"
    next_ = f"kubectl describe pods -n {namespace}, then run the same command again, or with another --image"
    raise Refused(Problem(PART_FAILED, what, place, cause, next_))


async def _has_leader(client: Client, pods: list[Object]) -> bool:
    return await _leader(client) in {each["metadata"]["name"] for each in pods}


def _matches_template(pod: Object, wanted: Object) -> bool:
    """Whether a pod belongs to the wanted template: pods of the previous one exist during a rollout."""
    template = wanted["spec"]["template"]
    facts, images = (
        template["metadata"].get("annotations", {}),
        [each["image"] for each in template["spec"]["containers"]],
    )
    return facts.items() <= pod["metadata"].get("annotations", {}).items() and images == [
        each["image"] for each in pod["spec"]["containers"]
    ]


def _observed(cluster: Object) -> bool:
    return bool(cluster.get("status", {}).get("observedGeneration", 0) >= cluster["metadata"]["generation"])


def _deployment_complete(deployment: Object) -> bool:
    status, replicas = deployment["status"], deployment["spec"]["replicas"]
    return {status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")} == {replicas}


def _stateful_set_complete(stateful_set: Object) -> bool:
    status, replicas = stateful_set["status"], stateful_set["spec"]["replicas"]
    return {status.get(each, 0) for each in ("updatedReplicas", "availableReplicas")} == {replicas}


def _daemon_set_complete(daemon_set: Object) -> bool:
    """Available on one node at least: with many nodes, one is always unavailable."""
    status = daemon_set["status"]
    return bool(status.get("numberAvailable", 0)) or status.get("desiredNumberScheduled", 0) == 0


_COMPLETE: dict[str, Callable[[Object], bool]] = {
    kinds.DEPLOYMENTS.kind: _deployment_complete,
    kinds.STATEFUL_SETS.kind: _stateful_set_complete,
    kinds.DAEMON_SETS.kind: _daemon_set_complete,
}


async def _leader(client: Client) -> str:
    """Pod name of the operator's lease holder; its identity is `POD:PORT`."""
    try:
        lease = await client.get(kinds.LEASES, OPERATOR, SYSTEM_NAMESPACE)
    except NotFound:
        return ""
    return str(lease["spec"].get("holderIdentity", "")).partition(":")[0]


def _failure(pod: Object) -> str:
    """The reason why a pod does not start, with the kubelet's message; empty if there is none."""
    for container in pod.get("status", {}).get("containerStatuses", ()):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") in _FATAL_WAITING_REASONS:
            return f"{pod['metadata']['name']}: {waiting['reason']}: {waiting.get('message', '')}"
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition.get("reason") == "Unschedulable":
            return f"{pod['metadata']['name']}: Unschedulable: {condition.get('message', '')}"
    return ""
