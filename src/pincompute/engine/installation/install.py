"""Writes the platform into a cluster, whatever version is there, and waits until work may come in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import groupby

from pincompute.api.names import DESK, INSTALLER, OPERATOR, SYSTEM
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import PART_FAILED
from pincompute.controller.resources import NOUNS
from pincompute.engine.first_project import make_project
from pincompute.engine.installation.contents import RESOURCES
from pincompute.engine.installation.look import Seen
from pincompute.engine.progress import Progress, span
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from pincompute.objects.content import identity

PATIENCE = 180.0
"""Seconds in which a cluster must have pulled the image and started the operator."""
FAILING = 20.0
"""Seconds after which what fails is not waited for: what was mended a moment ago may fail once more."""

# What a kubelet calls a container that will not start by itself.
_ILLS = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CrashLoopBackOff",
        "CreateContainerConfigError",
    )
)


async def bring(client: Client, seen: Seen, wanted: list[Object], progress: Progress) -> None:
    """What is the same stays as it is; what is no longer wanted goes; return when all of it does its work."""
    begun = client.clock.monotonic()
    # What needs a certificate comes after who gives it: a kubelet asks again ever more seldom. And a desk ends
    # before the next one begins: that is asked for when it is known that the image can be had.
    patient = {kinds.DAEMON_SETS.kind, kinds.STATEFUL_SETS.kind}
    later = [each for each in wanted if each["kind"] in patient or identity(each) == f"{kinds.DEPLOYMENTS.kind}/{DESK}"]
    first = [each for each in wanted if each not in later]
    await write(client, first)
    running = [each for each in first if each["kind"] == kinds.DEPLOYMENTS.kind]
    (operator,) = (each for each in running if each["metadata"]["name"] == OPERATOR)
    await _until(client, operator, lambda pods: _leads(client, pods))
    progress.say(f"{await _leader(client)} leads after {span(client.clock.monotonic() - begun)}")
    support = [*(each for each in running if each is not operator), *later]
    await asyncio.gather(*(_until(client, each) for each in support if each not in later))
    await write(client, later)
    await asyncio.gather(*(_until(client, each) for each in later))
    if support:
        names = ", ".join(each["metadata"]["name"] for each in support)
        progress.say(f"{names} run after {span(client.clock.monotonic() - begun)}")
    await clear(client, seen, wanted, progress)


async def write(client: Client, wanted: list[Object]) -> None:
    """Kind by kind, in their order."""
    for _, together in groupby(wanted, key=lambda each: each["kind"]):
        await asyncio.gather(*(client.apply(each, RESOURCES[each["kind"]], manager=INSTALLER) for each in together))


async def clear(client: Client, seen: Seen, wanted: list[Object], progress: Progress) -> None:
    for each in superfluous(seen, wanted):
        await remove(client, each)
        progress.say(f"{identity(each)} removed: this version has none")


async def first_project(client: Client, name: str, look_at: str) -> str:
    """The project that work may go to; one is made where there is none."""
    there = sorted(each["metadata"]["name"] for each in (await client.list(NOUNS["Project"])).items)
    if there and name not in there:
        name = there[0]
    return await make_project(client, next_=look_at, name=name, manager=INSTALLER)


def superfluous(seen: Seen, wanted: list[Object]) -> list[Object]:
    """What an older version made and this one has no use for. Kinds stay, as somebody may have objects of them, and so
    does what a desk has written down."""
    named = {identity(each) for each in wanted}
    kept = {kinds.CRDS.kind, kinds.NAMESPACES.kind, kinds.CLAIMS.kind}
    return [each for each in seen.ours if identity(each) not in named and each["kind"] not in kept]


async def remove(client: Client, object_: Object) -> None:
    metadata = object_["metadata"]
    resource = RESOURCES[object_["kind"]]
    try:
        await client.delete(resource, metadata["name"], metadata.get("namespace", ""), uid=metadata["uid"])
    except NotFound:
        return


async def _until(
    client: Client, wanted: Object, served: Callable[[list[Object]], Awaitable[bool]] | None = None
) -> None:
    """Return when all of its pods are as wanted, and serve."""
    clock, kind, metadata = client.clock, RESOURCES[wanted["kind"]], wanted["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    begun, ailing = clock.monotonic(), 0.0
    told = "none has come yet"
    while clock.monotonic() - begun < PATIENCE:
        seen = await client.get(kind, name, namespace)
        listing = await client.list(kinds.PODS, namespace, labels=f"app.kubernetes.io/name={name}")
        pods = [each for each in listing.items if _like(each, wanted)]
        if _observed(seen) and _COMPLETE[kind.kind](seen) and (served is None or await served(pods)):
            return
        ill = next(filter(None, map(_ill, pods)), "")
        told = ill or told
        ailing = (ailing or clock.monotonic()) if ill else 0.0
        if ill and clock.monotonic() - ailing > FAILING:
            break
        await asyncio.sleep(0.5)
    place = Where(object=f"{kind.plural} {namespace}/{name}")
    whose = "the operator's pods" if name == OPERATOR else f"the pods of {name}"
    what = f"{whose} do not run, and what runs already is not touched"
    next_ = f"kubectl describe pods --namespace {namespace}; then the same command again, or with --image"
    raise Refused(Problem(PART_FAILED, what, place, told, next_))


async def _leads(client: Client, pods: list[Object]) -> bool:
    return await _leader(client) in {each["metadata"]["name"] for each in pods}


def _like(pod: Object, wanted: Object) -> bool:
    """Of the making that is wanted: those of the one before are still there meanwhile."""
    template = wanted["spec"]["template"]
    facts, images = (
        template["metadata"].get("annotations", {}),
        [each["image"] for each in template["spec"]["containers"]],
    )
    return facts.items() <= pod["metadata"].get("annotations", {}).items() and images == [
        each["image"] for each in pod["spec"]["containers"]
    ]


def _observed(seen: Object) -> bool:
    return bool(seen.get("status", {}).get("observedGeneration", 0) >= seen["metadata"]["generation"])


def _every_copy(deployment: Object) -> bool:
    status, replicas = deployment["status"], deployment["spec"]["replicas"]
    return {status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")} == {replicas}


def _in_turn(stateful_set: Object) -> bool:
    status, replicas = stateful_set["status"], stateful_set["spec"]["replicas"]
    return {status.get(each, 0) for each in ("updatedReplicas", "availableReplicas")} == {replicas}


def _somewhere(daemon_set: Object) -> bool:
    """Of many nodes one is always away."""
    status = daemon_set["status"]
    return bool(status.get("numberAvailable", 0)) or status.get("desiredNumberScheduled", 0) == 0


_COMPLETE: dict[str, Callable[[Object], bool]] = {
    kinds.DEPLOYMENTS.kind: _every_copy,
    kinds.STATEFUL_SETS.kind: _in_turn,
    kinds.DAEMON_SETS.kind: _somewhere,
}


async def _leader(client: Client) -> str:
    """A holder is a pod and its port."""
    try:
        lease = await client.get(kinds.LEASES, OPERATOR, SYSTEM)
    except NotFound:
        return ""
    return str(lease["spec"].get("holderIdentity", "")).partition(":")[0]


def _ill(pod: Object) -> str:
    """Why a pod does not start, in the kubelet's words."""
    for each in pod.get("status", {}).get("containerStatuses", ()):
        waiting = each.get("state", {}).get("waiting", {})
        if waiting.get("reason") in _ILLS:
            return f"{pod['metadata']['name']}: {waiting['reason']}: {waiting.get('message', '')}"
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition.get("reason") == "Unschedulable":
            return f"{pod['metadata']['name']}: Unschedulable: {condition.get('message', '')}"
    return ""
