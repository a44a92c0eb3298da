"""Looks at a cluster before anything is done to it: whose it is, how old, and what of ours is there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import CLUSTER_FACTS, DESK, INSTALLED, LOG_SHIPPER, OPERATOR
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import KUBERNETES_TOO_OLD, NEWER_INSTALLED, NOT_OURS, POD_CERTIFICATES_MISSING
from pincompute.engine.installation.contents import IMAGE, RESOURCES, VERSION, Words, places
from pincompute.engine.installation.desk import Desk, told_of
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from pincompute.objects.content import identity
from pincompute.objects.image import parse

OLDEST = (1, 33)
"""The first Kubernetes in which sidecars that end with their pod are there for good, and all that we use besides."""


class Seen(NamedTuple):
    server: str
    version: str
    """Such as v1.36.3."""
    user: str
    context: str
    certificates: bool
    """Whether it knows how pods are given certificates, and told whom to trust by them."""
    objects: list[Object]
    """Those of ours, and whatever else stands where one of ours would."""

    @property
    def ours(self) -> list[Object]:
        return [each for each in self.objects if INSTALLED in each["metadata"].get("labels", {})]

    @property
    def installed(self) -> str:
        """The newest version that wrote anything; empty on a cluster that never had any."""
        versions = [each["metadata"]["labels"][INSTALLED] for each in self.ours]
        return max(versions, key=numbers, default="")

    @property
    def runs(self) -> bool:
        """Whether the platform is there, and not only what stayed of it."""
        return self.find("Deployment", OPERATOR) is not None

    @property
    def desk(self) -> Desk:
        """As it was told to be; without an address there is none."""
        return told_of(self.find("Deployment", DESK))

    @property
    def recorded(self) -> bool:
        """Whether there is or was a desk."""
        return bool(self.desk.address or self.find(kinds.CLAIMS.kind, DESK))

    @property
    def facts(self) -> dict[str, str]:
        """What the cluster says of itself."""
        return (self.find("ConfigMap", CLUSTER_FACTS) or {}).get("data", {})

    def find(self, kind: str, name: str) -> Object | None:
        return next((each for each in self.ours if (each["kind"], each["metadata"]["name"]) == (kind, name)), None)


async def look(client: Client, wanted: list[Object]) -> Seen:
    version, user, certificates, objects = await asyncio.gather(
        _version(client), _user(client), _certificates(client), _objects(client, wanted)
    )
    return Seen(client.access.server, version, user, client.access.context, certificates, objects)


def settled(seen: Seen, image: str, domain: str, pod_logs: str = "", desk: Desk | None = None) -> Words:
    """What was not said stays as it is on this cluster; of the image, where it lies."""
    facts = seen.facts
    # Only a name that may be part of an identity can be a cluster's.
    name = facts.get("name") or re.sub("[^a-z0-9-]+", "-", seen.context.lower()).strip("-")[:40] or Words().name
    host, _, port = domain.partition(":")
    return Words(
        image=image or _image(seen),
        name=name,
        domain=host or facts.get("domain", Words().domain),
        port=int(port or (80 if host else facts.get("port", 80))),
        pod_logs=pod_logs or _pod_logs(seen),
        support=seen.certificates,
        desk=seen.desk.told(desk or Desk()),
    )


def problems(seen: Seen, wanted: list[Object], *, runtime: bool = False) -> Iterator[Problem]:
    """Why nothing may be installed there."""
    if numbers(seen.version)[:2] < OLDEST:
        least = ".".join(map(str, OLDEST))
        what = f"the cluster is Kubernetes {seen.version}, and PinCompute needs {least} or newer"
        yield Problem(KUBERNETES_TOO_OLD, what, Where(object=seen.server), next="upgrade the cluster first")
    if numbers(seen.installed) > numbers(VERSION):
        what = f"PinCompute {seen.installed} is installed there, and this is {VERSION}"
        next_ = f"use pin {seen.installed}, or a newer one"
        yield Problem(NEWER_INSTALLED, what, Where(object=seen.server), next=next_)
    if runtime and not seen.certificates:
        what = f"the cluster gives pods no certificates: it does not serve {kinds.POD_CERTIFICATES.api_version}"
        yield Problem(POD_CERTIFICATES_MISSING, what, Where(object=seen.server), next="the same without --runtime")
    ours = {identity(each) for each in seen.ours}
    names = {identity(each) for each in wanted}
    for each in seen.objects:
        # Kinds of our group are ours, whoever brought them.
        if identity(each) in names - ours and each["kind"] != kinds.CRDS.kind:
            what = f"{identity(each)} is there, and `pin install` did not make it"
            next_ = f"remove it, or hand it over: kubectl label {_typed(each)} {INSTALLED}={VERSION}"
            yield Problem(NOT_OURS, what, next=next_)


def numbers(version: str) -> tuple[int, ...]:
    """By which versions are compared: 1.36.3 of v1.36.3-eks-1."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def _image(seen: Seen) -> str:
    """Where it was pulled from last, at our version."""
    there = seen.find("Deployment", OPERATOR)
    if there is None:
        return Words().image
    before = parse(there["spec"]["template"]["spec"]["containers"][0]["image"])
    return f"{before.host}/{before.path}:{VERSION}" if before.host or before.path != IMAGE else Words().image


def _pod_logs(seen: Seen) -> str:
    shipper = seen.find("DaemonSet", LOG_SHIPPER)
    volumes = shipper["spec"]["template"]["spec"]["volumes"] if shipper else ()
    return next((each["hostPath"]["path"] for each in volumes if "hostPath" in each), Words().pod_logs)


def _typed(object_: Object) -> str:
    metadata = object_["metadata"]
    resource = RESOURCES[object_["kind"]]
    place = f" --namespace {metadata['namespace']}" if "namespace" in metadata else ""
    return f"{resource.plural} {metadata['name']}{place}"


async def _version(client: Client) -> str:
    return str(msgspec.json.decode(await client.raw("GET", "/version"))["gitVersion"])


async def _user(client: Client) -> str:
    """By the cluster's own word; a cluster need not tell it."""
    review = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
    answer: Any = await client.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
    return str(msgspec.json.decode(answer)["status"]["userInfo"].get("username", ""))


async def _certificates(client: Client) -> bool:
    """By what it says it serves; that its nodes do as well is seen when they do."""
    needed = (kinds.POD_CERTIFICATES, kinds.TRUST_BUNDLES)
    try:
        answer = await client.raw("GET", f"/apis/{kinds.POD_CERTIFICATES.api_version}")
    except NotFound:
        return False
    return {each.plural for each in needed} <= {each["name"] for each in msgspec.json.decode(answer)["resources"]}


async def _objects(client: Client, wanted: list[Object]) -> list[Object]:
    """Ours by their mark, whatever we want by now; and what has a name that we want."""
    marked = await asyncio.gather(*(_marked(client, *each) for each in places()))
    named = await asyncio.gather(*(_named(client, each) for each in wanted))
    found = [*(each for several in marked for each in several), *(each for each in named if each)]
    return list({each["metadata"]["uid"]: each for each in found}.values())


async def _marked(client: Client, resource: kinds.Resource, namespace: str) -> list[Object]:
    listing = await client.list(resource, namespace, labels=INSTALLED)
    return [{**each, "kind": resource.kind} for each in listing.items]


async def _named(client: Client, object_: Object) -> Object | None:
    metadata = object_["metadata"]
    try:
        return await client.get(RESOURCES[object_["kind"]], metadata["name"], metadata.get("namespace", ""))
    except NotFound:
        return None
