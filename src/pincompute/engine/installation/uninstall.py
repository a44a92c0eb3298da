"""Takes the platform off a cluster. What runs there goes on, unless it is told to go as well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from pincompute.api.kinds import WORKLOADS
from pincompute.api.membership import Review
from pincompute.api.names import DESK, INSTALLED, OPERATOR, PROJECT, REVIEW
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import STILL_THERE
from pincompute.controller.resources import NOUNS
from pincompute.engine.installation.contents import ORDER, stays
from pincompute.engine.installation.install import remove
from pincompute.engine.installation.look import Seen
from pincompute.engine.progress import Progress
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object, Resource
from pincompute.objects.content import identity

PATIENCE = 300.0
"""Seconds in which what was told to go must have gone."""


async def census(client: Client) -> dict[str, list[Object]]:
    """All objects of our kinds, by kind; none of those that the cluster does not know any more."""
    found = await asyncio.gather(*(_there(client, each) for each in NOUNS.values()))
    return dict(zip(NOUNS, found, strict=True))


async def uninstall(client: Client, seen: Seen, progress: Progress, *, workloads: bool, served: bool) -> None:
    """The desk and the operator first: nobody makes again what goes. Then, from the leaves to the root, what is told to
    go."""
    staying = partial(stays, served=served, recorded=seen.recorded)
    gone = [each for each in reversed(_ordered(seen.ours)) if workloads or not staying(each)]
    makers = {f"{kinds.DEPLOYMENTS.kind}/{each}" for each in (DESK, OPERATOR)}
    operators = [each for each in gone if identity(each) in makers]
    await _end_all(client, progress, operators)
    if workloads:
        await _end_work(client, progress)
    # Who ships lines ends at once where the store still takes them.
    shippers = [each for each in gone if each["kind"] == kinds.DAEMON_SETS.kind]
    await _end_all(client, progress, shippers)
    for each in gone:
        if each not in (*operators, *shippers):
            await remove(client, each)
    await _until(progress, "the platform", lambda: _left(client, gone))
    if workloads or not served:
        # The signer published it, and publishes no more.
        for each in await _there(client, kinds.TRUST_BUNDLES, labels=INSTALLED):
            await _end(client, kinds.TRUST_BUNDLES, each)


async def _end_all(client: Client, progress: Progress, running: Iterable[Object]) -> None:
    """Return when their pods have ended, too."""
    for each in running:
        metadata = each["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        await remove(client, each)
        await _until(progress, f"the pods of {name}", lambda name=name, place=namespace: _pods(client, name, place))


async def _pods(client: Client, name: str, namespace: str) -> list[Object]:
    return (await client.list(kinds.PODS, namespace, labels=f"app.kubernetes.io/name={name}")).items


async def _end_work(client: Client, progress: Progress) -> None:
    """An owner stays until all that it owns is gone: so who is gone has left nothing behind.

    Where only what has landed runs nobody deletes it by hand: it goes with its project.
    """
    landed = await _there(client, kinds.NAMESPACES, labels=f"{REVIEW}={Review.LANDED}")
    closed = {each["metadata"]["name"] for each in landed}

    async def there(kind: str) -> list[Object]:
        found = await _there(client, NOUNS[kind])
        return [each for each in found if each["metadata"].get("namespace") not in closed]

    for kinds_ in (WORKLOADS, ("Project",), ("Runtime", "PinterestSidecar", "PinterestDaemon")):
        for kind in kinds_:
            for each in await there(kind):
                await _end(client, NOUNS[kind], each)
        for kind in kinds_:
            await _until(progress, NOUNS[kind].plural, lambda kind=kind: there(kind))
    await _until(progress, "the namespaces of projects", lambda: _namespaces(client))


async def _end(client: Client, resource: Resource, object_: Object) -> None:
    metadata = object_["metadata"]
    try:
        await client.delete(resource, metadata["name"], metadata.get("namespace", ""), propagation="Foreground")
    except NotFound:
        return


async def _there(client: Client, resource: Resource, labels: str = "") -> list[Object]:
    try:
        return (await client.list(resource, labels=labels)).items
    except NotFound:
        return []


async def _namespaces(client: Client) -> list[Object]:
    return (await client.list(kinds.NAMESPACES, labels=PROJECT)).items


async def _left(client: Client, gone: Iterable[Object]) -> list[Object]:
    uids = {each["metadata"]["uid"] for each in gone}
    resources = [each for each in ORDER if each.kind in {one["kind"] for one in gone}]
    there = await asyncio.gather(*(_there(client, each) for each in resources))
    return [each for several in there for each in several if each["metadata"]["uid"] in uids]


def _ordered(objects: Iterable[Object]) -> list[Object]:
    order = {each.kind: index for index, each in enumerate(ORDER)}
    return sorted(objects, key=lambda each: order[each["kind"]])


async def _until(progress: Progress, what: str, left: Callable[[], Awaitable[list[Object]]]) -> None:
    """Return when nothing is left of it."""
    there: list[Object] = []
    try:
        async with asyncio.timeout(PATIENCE):
            while there := await left():
                progress.show(f"{what}: {len(there)} still there")
                await asyncio.sleep(0.5)
    except TimeoutError as error:
        names = [each["metadata"]["name"] for each in there]
        told = f"{what}: {len(names)} still there after {PATIENCE:.0f} s"
        raise Refused(Problem(STILL_THERE, told, note=" ".join(names[:20]), next="the same command again")) from error
