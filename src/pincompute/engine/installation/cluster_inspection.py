"""Inspects a cluster before an installation: version, user, and existing objects of the platform."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, DESK, INSTALLED_LABEL, LOG_SHIPPER, OPERATOR
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import KUBERNETES_TOO_OLD, NEWER_INSTALLED, NOT_OWNED, POD_CERTIFICATES_MISSING
from pincompute.engine.installation.desk import DeskConfig, desk_config_of
from pincompute.engine.installation.objects import DEFAULT_IMAGE, RESOURCES, VERSION, InstallConfig, resource_locations
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from pincompute.objects.content import object_label
from pincompute.objects.image import parse_image

MIN_KUBERNETES = (1, 33)
"""Minimum version: the first in which sidecar containers are stable, and all other required features are present."""


class ClusterState(NamedTuple):
    server: str
    version: str
    """Such as v1.36.3."""
    user: str
    context: str
    serves_pod_certificates: bool
    """Whether the API server serves pod certificate requests and trust bundles."""
    objects: list[Object]
    """Objects of the platform, and foreign objects with the name of one."""

    @property
    def installed_objects(self) -> list[Object]:
        return [each for each in self.objects if INSTALLED_LABEL in each["metadata"].get("labels", {})]

    @property
    def installed_version(self) -> str:
        """The newest version that has written an object; empty on a cluster without any."""
        versions = [each["metadata"]["labels"][INSTALLED_LABEL] for each in self.installed_objects]
        return max(versions, key=version_numbers, default="")

    @property
    def has_operator(self) -> bool:
        """Whether the platform is installed, and not only objects that survived its removal."""
        return self.find("Deployment", OPERATOR) is not None

    @property
    def desk(self) -> DeskConfig:
        """The desk's configuration; its address is empty without a desk."""
        return desk_config_of(self.find("Deployment", DESK))

    @property
    def has_desk_record(self) -> bool:
        """Whether a desk is installed or has left its database."""
        return bool(self.desk.address or self.find(kinds.PERSISTENT_VOLUME_CLAIMS.kind, DESK))

    @property
    def cluster_facts(self) -> dict[str, str]:
        """Content of the facts ConfigMap."""
        return (self.find("ConfigMap", CLUSTER_FACTS_CONFIGMAP) or {}).get("data", {})

    def find(self, kind: str, name: str) -> Object | None:
        return next(
            (each for each in self.installed_objects if (each["kind"], each["metadata"]["name"]) == (kind, name)), None
        )


async def inspect_cluster(client: Client, wanted: list[Object]) -> ClusterState:
    version, user, certificates, objects = await asyncio.gather(
        _version(client), _user(client), _serves_pod_certificates(client), _objects(client, wanted)
    )
    return ClusterState(client.access.server, version, user, client.access.context, certificates, objects)


def resolve_config(
    cluster: ClusterState, image: str, domain: str, pod_logs: str = "", desk: DeskConfig | None = None
) -> InstallConfig:
    """Merge the options of `pin install` with the installed configuration.

    Of the installed image the registry and folder are kept; its tag becomes this version.
    """
    facts = cluster.cluster_facts
    # The name becomes part of SPIFFE ids, so other characters are replaced.
    name = (
        facts.get("name") or re.sub("[^a-z0-9-]+", "-", cluster.context.lower()).strip("-")[:40] or InstallConfig().name
    )
    host, _, port = domain.partition(":")
    return InstallConfig(
        image=image or _image(cluster),
        name=name,
        domain=host or facts.get("domain", InstallConfig().domain),
        port=int(port or (80 if host else facts.get("port", 80))),
        pod_logs=pod_logs or _pod_logs(cluster),
        runtime_support=cluster.serves_pod_certificates,
        desk=cluster.desk.merged_with(desk or DeskConfig()),
    )


def find_problems(cluster: ClusterState, wanted: list[Object], *, runtime: bool = False) -> Iterator[Problem]:
    """Problems that prevent an installation."""
    if version_numbers(cluster.version)[:2] < MIN_KUBERNETES:
        least = ".".join(map(str, MIN_KUBERNETES))
        what = f"the cluster is Kubernetes {cluster.version}, and PinCompute needs {least} or newer"
        yield Problem(
            KUBERNETES_TOO_OLD,
            what,
            Where(object=cluster.server),
            next="upgrade the cluster, then run the same command again",
        )
    if version_numbers(cluster.installed_version) > version_numbers(VERSION):
        what = f"PinCompute {cluster.installed_version} is installed, newer than this version, {VERSION}"
        next_ = f"use pin {cluster.installed_version} or newer"
        yield Problem(NEWER_INSTALLED, what, Where(object=cluster.server), next=next_)
    if runtime and not cluster.serves_pod_certificates:
        what = f"the cluster has no pod certificates: it does not serve {kinds.POD_CERTIFICATE_REQUESTS.api_version}"
        yield Problem(
            POD_CERTIFICATES_MISSING, what, Where(object=cluster.server), next="run the same command without --runtime"
        )
    ours = {object_label(each) for each in cluster.installed_objects}
    names = {object_label(each) for each in wanted}
    for object_ in cluster.objects:
        # CRDs of our API group may have been applied by other means, such as kubectl.
        if object_label(object_) in names - ours and object_["kind"] != kinds.CRDS.kind:
            what = f"{object_label(object_)} exists and was not created by `pin install`"
            next_ = f"delete it, or hand it over: kubectl label {_kubectl_name(object_)} {INSTALLED_LABEL}={VERSION}"
            yield Problem(NOT_OWNED, what, next=next_)


def version_numbers(version: str) -> tuple[int, ...]:
    """Numbers of a version, for comparison: (1, 36, 3) of v1.36.3-eks-1."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def _image(cluster: ClusterState) -> str:
    """The image of the installed operator with the tag of this version."""
    there = cluster.find("Deployment", OPERATOR)
    if there is None:
        return InstallConfig().image
    before = parse_image(there["spec"]["template"]["spec"]["containers"][0]["image"])
    return (
        f"{before.host}/{before.path}:{VERSION}"
        if before.host or before.path != DEFAULT_IMAGE
        else InstallConfig().image
    )


def _pod_logs(cluster: ClusterState) -> str:
    shipper = cluster.find("DaemonSet", LOG_SHIPPER)
    volumes = shipper["spec"]["template"]["spec"]["volumes"] if shipper else ()
    return next((each["hostPath"]["path"] for each in volumes if "hostPath" in each), InstallConfig().pod_logs)


def _kubectl_name(object_: Object) -> str:
    metadata = object_["metadata"]
    resource = RESOURCES[object_["kind"]]
    place = f" --namespace {metadata['namespace']}" if "namespace" in metadata else ""
    return f"{resource.plural} {metadata['name']}{place}"


async def _version(client: Client) -> str:
    return str(msgspec.json.decode(await client.raw("GET", "/version"))["gitVersion"])


async def _user(client: Client) -> str:
    """User name as reported by the API server; empty if it reports none."""
    review = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
    answer: Any = await client.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
    return str(msgspec.json.decode(answer)["status"]["userInfo"].get("username", ""))


async def _serves_pod_certificates(client: Client) -> bool:
    """Whether the API server serves both resources. Support by the kubelets cannot be checked in advance."""
    needed = (kinds.POD_CERTIFICATE_REQUESTS, kinds.CLUSTER_TRUST_BUNDLES)
    try:
        answer = await client.raw("GET", f"/apis/{kinds.POD_CERTIFICATE_REQUESTS.api_version}")
    except NotFound:
        return False
    return {each.plural for each in needed} <= {each["name"] for each in msgspec.json.decode(answer)["resources"]}


async def _objects(client: Client, wanted: list[Object]) -> list[Object]:
    """Objects with the label of the platform, and objects with the name of a wanted one."""
    marked = await asyncio.gather(*(_labelled_objects(client, *each) for each in resource_locations()))
    named = await asyncio.gather(*(_object_by_name(client, each) for each in wanted))
    found = [*(each for several in marked for each in several), *(each for each in named if each)]
    return list({each["metadata"]["uid"]: each for each in found}.values())


async def _labelled_objects(client: Client, resource: kinds.Resource, namespace: str) -> list[Object]:
    listing = await client.list(resource, namespace, labels=INSTALLED_LABEL)
    return [{**each, "kind": resource.kind} for each in listing.items]


async def _object_by_name(client: Client, object_: Object) -> Object | None:
    metadata = object_["metadata"]
    try:
        return await client.get(RESOURCES[object_["kind"]], metadata["name"], metadata.get("namespace", ""))
    except NotFound:
        return None
