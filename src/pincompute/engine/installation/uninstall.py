"""Removes the platform from a cluster, optionally with all workloads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from pincompute.api.kinds import WORKLOADS
from pincompute.api.membership import ReviewMode
from pincompute.api.names import DESK, INSTALLED_LABEL, OPERATOR, PROJECT_LABEL, REVIEW_LABEL
from pincompute.base.problem import Problem, Refused
from pincompute.base.progress import Progress
from pincompute.base.reasons import DELETION_STUCK
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.installation.cluster_inspection import ClusterState
from pincompute.engine.installation.install import delete_object
from pincompute.engine.installation.objects import APPLY_ORDER, survives_uninstall
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object, Resource
from pincompute.objects.content import object_label

REMOVAL_TIMEOUT_S = 300.0
"""Time limit of each deletion step."""


async def list_own_objects(client: Client) -> dict[str, list[Object]]:
    """All objects of our kinds, by kind; empty for kinds without a CRD in the cluster."""
    found = await asyncio.gather(*(_list_if_served(client, each) for each in CUSTOM_RESOURCES.values()))
    return dict(zip(CUSTOM_RESOURCES, found, strict=True))


async def uninstall(
    client: Client, cluster: ClusterState, progress: Progress, *, workloads: bool, uses_runtime: bool
) -> None:
    """Remove the platform, and with `workloads` everything it manages.

    The desk and the operator are removed first, so that they recreate nothing; the others follow in reverse order of
    their dependencies.
    """
    staying = partial(survives_uninstall, uses_runtime=uses_runtime, recorded=cluster.has_desk_record)
    gone = [each for each in reversed(_ordered(cluster.installed_objects)) if workloads or not staying(each)]
    controllers = {f"{kinds.DEPLOYMENTS.kind}/{each}" for each in (DESK, OPERATOR)}
    operators = [each for each in gone if object_label(each) in controllers]
    await _delete_with_pods(client, progress, operators)
    if workloads:
        await _delete_workloads(client, progress)
    # The shipper sends its remaining lines before it ends, so it is removed while the store still accepts them.
    shippers = [each for each in gone if each["kind"] == kinds.DAEMON_SETS.kind]
    await _delete_with_pods(client, progress, shippers)
    for object_ in gone:
        if object_ not in (*operators, *shippers):
            await delete_object(client, object_)
    await _wait_until_deleted(progress, "the platform", lambda: _remaining(client, gone))
    if workloads or not uses_runtime:
        # The trust bundle was published by the signer, which no longer runs.
        for bundle in await _list_if_served(client, kinds.CLUSTER_TRUST_BUNDLES, labels=INSTALLED_LABEL):
            await _delete(client, kinds.CLUSTER_TRUST_BUNDLES, bundle)


async def _delete_with_pods(client: Client, progress: Progress, running: Iterable[Object]) -> None:
    """Delete objects; return when their pods have ended, too."""
    for controller in running:
        metadata = controller["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        await delete_object(client, controller)
        await _wait_until_deleted(
            progress, f"the pods of {name}", lambda name=name, namespace=namespace: _pods(client, name, namespace)
        )


async def _pods(client: Client, name: str, namespace: str) -> list[Object]:
    return (await client.list(kinds.PODS, namespace, labels=f"app.kubernetes.io/name={name}")).items


async def _delete_workloads(client: Client, progress: Progress) -> None:
    """Delete workloads, then projects, then runtimes, in the foreground: owned objects are gone before their owner.

    Workloads of projects with `review: landed` cannot be deleted one by one; they are deleted with their project.
    """
    landed = await _list_if_served(client, kinds.NAMESPACES, labels=f"{REVIEW_LABEL}={ReviewMode.LANDED}")
    closed = {each["metadata"]["name"] for each in landed}

    async def remaining(kind: str) -> list[Object]:
        found = await _list_if_served(client, CUSTOM_RESOURCES[kind])
        return [each for each in found if each["metadata"].get("namespace") not in closed]

    for kinds_ in (WORKLOADS, ("Project",), ("Runtime", "PinterestSidecar", "PinterestDaemon")):
        for kind in kinds_:
            for object_ in await remaining(kind):
                await _delete(client, CUSTOM_RESOURCES[kind], object_)
        for kind in kinds_:
            await _wait_until_deleted(progress, CUSTOM_RESOURCES[kind].plural, lambda kind=kind: remaining(kind))
    await _wait_until_deleted(progress, "the namespaces of projects", lambda: _namespaces(client))


async def _delete(client: Client, resource: Resource, object_: Object) -> None:
    metadata = object_["metadata"]
    try:
        await client.delete(resource, metadata["name"], metadata.get("namespace", ""), propagation="Foreground")
    except NotFound:
        return


async def _list_if_served(client: Client, resource: Resource, labels: str = "") -> list[Object]:
    try:
        return (await client.list(resource, labels=labels)).items
    except NotFound:
        return []


async def _namespaces(client: Client) -> list[Object]:
    return (await client.list(kinds.NAMESPACES, labels=PROJECT_LABEL)).items


async def _remaining(client: Client, gone: Iterable[Object]) -> list[Object]:
    uids = {each["metadata"]["uid"] for each in gone}
    resources = [each for each in APPLY_ORDER if each.kind in {one["kind"] for one in gone}]
    there = await asyncio.gather(*(_list_if_served(client, each) for each in resources))
    return [each for several in there for each in several if each["metadata"]["uid"] in uids]


def _ordered(objects: Iterable[Object]) -> list[Object]:
    order = {each.kind: index for index, each in enumerate(APPLY_ORDER)}
    return sorted(objects, key=lambda each: order[each["kind"]])


async def _wait_until_deleted(progress: Progress, what: str, left: Callable[[], Awaitable[list[Object]]]) -> None:
    """Wait until `left` returns no objects."""
    there: list[Object] = []
    try:
        async with asyncio.timeout(REMOVAL_TIMEOUT_S):
            while there := await left():
                progress.update(f"waiting for deletion of {what}: {len(there)} left")
                await asyncio.sleep(0.5)
    except TimeoutError as error:
        names = [each["metadata"]["name"] for each in there]
        what_left = f"{what}: {len(names)} not deleted after {REMOVAL_TIMEOUT_S:.0f} s"
        raise Refused(
            Problem(DELETION_STUCK, what_left, note=" ".join(names[:20]), next="run the same command again")
        ) from error
