"""Writes the platform into a cluster, whatever version is there, and waits until work may come in."""

from __future__ import annotations

import asyncio
from itertools import groupby

from pincompute.api.names import INSTALLER, OPERATOR, SYSTEM
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


async def write(client: Client, seen: Seen, wanted: list[Object], progress: Progress) -> None:
    """What is the same stays as it is; what is no longer wanted goes; the operator comes last."""
    for _, together in groupby(wanted, key=lambda each: each["kind"]):
        await asyncio.gather(*(client.apply(each, RESOURCES[each["kind"]], manager=INSTALLER) for each in together))
    for each in superfluous(seen, wanted):
        await remove(client, each)
        progress.say(f"{identity(each)} removed: this version has none")


async def await_operator(client: Client, wanted: list[Object], progress: Progress) -> None:
    begun = client.clock.monotonic()
    (deployment,) = (each for each in wanted if each["kind"] == kinds.DEPLOYMENTS.kind)
    leader = await _led(client, deployment)
    progress.say(f"{leader} leads after {span(client.clock.monotonic() - begun)}")


async def first_project(client: Client, name: str, look_at: str) -> str:
    """The project that work may go to; one is made where there is none."""
    there = sorted(each["metadata"]["name"] for each in (await client.list(NOUNS["Project"])).items)
    if there and name not in there:
        name = there[0]
    return await make_project(client, next_=look_at, name=name, manager=INSTALLER)


def superfluous(seen: Seen, wanted: list[Object]) -> list[Object]:
    """What an older version made and this one has no use for. Kinds stay: somebody may have objects of them."""
    named = {identity(each) for each in wanted}
    kept = {kinds.CRDS.kind, kinds.NAMESPACES.kind}
    return [each for each in seen.ours if identity(each) not in named and each["kind"] not in kept]


async def remove(client: Client, object_: Object) -> None:
    metadata = object_["metadata"]
    resource = RESOURCES[object_["kind"]]
    try:
        await client.delete(resource, metadata["name"], metadata.get("namespace", ""), uid=metadata["uid"])
    except NotFound:
        return


async def _led(client: Client, wanted: Object) -> str:
    """The pod that leads, once all of the operator's are as wanted."""
    clock = client.clock
    begun, ailing = clock.monotonic(), 0.0
    told = "none has come yet"
    while clock.monotonic() - begun < PATIENCE:
        deployment = await client.get(kinds.DEPLOYMENTS, OPERATOR, SYSTEM)
        pods = [each for each in (await client.list(kinds.PODS, SYSTEM)).items if _like(each, wanted)]
        leader = await _leader(client)
        if _complete(deployment) and leader in {each["metadata"]["name"] for each in pods}:
            return leader
        ill = next(filter(None, map(_ill, pods)), "")
        told = ill or told
        ailing = (ailing or clock.monotonic()) if ill else 0.0
        if ill and clock.monotonic() - ailing > FAILING:
            break
        await asyncio.sleep(0.5)
    place = Where(object=f"deployments {SYSTEM}/{OPERATOR}")
    what = "the operator's pods do not run, and what runs already is not touched"
    next_ = f"kubectl describe pods --namespace {SYSTEM}; then the same command again, or with --image"
    raise Refused(Problem(PART_FAILED, what, place, told, next_))


def _like(pod: Object, wanted: Object) -> bool:
    """Of the making that is wanted: those of the one before are still there meanwhile."""
    template = wanted["spec"]["template"]
    facts, images = template["metadata"]["annotations"], [each["image"] for each in template["spec"]["containers"]]
    return facts.items() <= pod["metadata"].get("annotations", {}).items() and images == [
        each["image"] for each in pod["spec"]["containers"]
    ]


def _complete(deployment: Object) -> bool:
    status, replicas = deployment.get("status", {}), deployment["spec"]["replicas"]
    counts = {status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and counts == {replicas}


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
