"""Whether a pod is given the certificate of a workload: pure, from what the cluster says of both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pincompute.api.names import API_VERSION, KIND, PREFIX, PROJECT, WORKLOAD
from pincompute.api.wire import Metadata, Wire
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import IDENTITY_DENIED
from pincompute.objects.spiffe import SpiffeId
from pincompute.planning.snapshot import OwnedMetadata

LIFE = timedelta(hours=1)
SLACK = timedelta(minutes=1)
"""How far the clock of whoever reads it may lag behind the signer's."""
JITTER = 0.05
"""Pods that were made together renew apart: by so much of a life before and after its half."""

USAGES = frozenset({"digital signature", "client auth", "server auth"})
"""What a certificate is for; nobody is given one for more."""

CHAINS = {
    ("apps/v1 ReplicaSet", "apps/v1 Deployment"),
    ("apps/v1 StatefulSet",),
    ("apps/v1 DaemonSet",),
    ("batch/v1 Job",),
    ("batch/v1 Job", "batch/v1 CronJob"),
    ("kubeflow.org/v1 PyTorchJob",),
    ("kubeflow.org/v1 TFJob",),
}
"""Who stands between a pod and its workload, from the pod upwards."""

_ACCOUNT = "system:serviceaccount:"


class RequestSpec(Wire, frozen=True):
    signer_name: str
    pod_name: str
    node_name: str
    service_account_name: str
    pod_uid: str = msgspec.field(name="podUID")
    service_account_uid: str = msgspec.field(name="serviceAccountUID")
    key: bytes = msgspec.field(name="stubPKCS10Request", default=b"")
    """A PKCS#10 request, which is of interest for the key in it."""
    unverified_user_annotations: dict[str, str] = {}
    usages: list[str] = []
    """What a pod that asks for itself wants to do with it."""


class Condition(Wire, frozen=True):
    type: str
    status: str


class RequestStatus(Wire, frozen=True):
    conditions: list[Condition] = []


class Request(Wire, frozen=True):
    """A PodCertificateRequest: a node asks for one of its pods."""

    metadata: Metadata
    spec: RequestSpec
    status: RequestStatus = RequestStatus()

    @property
    def known(self) -> bool:
        """Whether it says of which pod it is."""
        return bool(self.metadata.namespace and self.spec.pod_name and self.spec.service_account_name)

    @property
    def answered(self) -> bool:
        """Once for all: an answer is never changed."""
        return any(each.status == "True" for each in self.status.conditions)


class SigningSpec(Wire, frozen=True):
    signer_name: str
    request: bytes
    usages: list[str] = []
    username: str = ""
    uid: str = ""
    extra: dict[str, list[str]] = {}
    """Who asks, as the API server has seen it; nobody writes these but the server."""


class SigningStatus(Wire, frozen=True):
    conditions: list[Condition] = []
    certificate: str = ""


class SigningRequest(Wire, frozen=True):
    """A CertificateSigningRequest: a pod asks for itself, by its token, where no volume of its can bring it one."""

    metadata: Metadata
    spec: SigningSpec
    status: SigningStatus = SigningStatus()

    @property
    def approved(self) -> bool:
        return any(each.type == "Approved" for each in self.status.conditions)

    @property
    def answered(self) -> bool:
        """That it was approved is no answer yet."""
        return bool(self.status.certificate) or any(
            each.type in {"Denied", "Failed"} for each in self.status.conditions
        )

    def of_pod(self) -> Request:
        """The same question, as the node of that pod would ask it; what the token does not say stays empty."""
        head, _, account = self.spec.username.partition(_ACCOUNT)
        place, _, name = account.partition(":") if not head else ("", "", "")
        spec = RequestSpec(
            signer_name=self.spec.signer_name,
            pod_name=self._said("pod-name"),
            pod_uid=self._said("pod-uid"),
            node_name=self._said("node-name"),
            service_account_name=name,
            service_account_uid=self.spec.uid,
            key=self.spec.request,
            usages=self.spec.usages,
        )
        return Request(msgspec.structs.replace(self.metadata, namespace=place), spec)

    def _said(self, what: str) -> str:
        """Of a token that is bound to a pod; one that is not says nothing."""
        said = self.spec.extra.get(f"authentication.kubernetes.io/{what}", ())
        return said[0] if len(said) == 1 else ""


class BearerSpec(Wire, frozen=True):
    node_name: str = ""
    service_account_name: str = ""


class BearerStatus(Wire, frozen=True):
    phase: str = ""


class Bearer(Wire, frozen=True):
    """A pod, as far as it matters who it is."""

    metadata: OwnedMetadata
    spec: BearerSpec = BearerSpec()
    status: BearerStatus = BearerStatus()


class Link(Wire, frozen=True):
    """Anything that has an owner or is one: a native, a service account, a workload."""

    metadata: OwnedMetadata
    kind: str = ""
    api_version: str = ""


class Evidence(NamedTuple):
    """What the cluster says at this moment. What is not there is None."""

    pod: Bearer | None
    account: Link | None
    owners: tuple[Link, ...] = ()
    """From the pod's controller up to the native that a workload became, as far as they are there."""
    workload: Link | None = None


class Granted(NamedTuple):
    """What a certificate is to say."""

    who: SpiffeId
    begin: datetime
    renew: datetime
    end: datetime


Account = tuple[str, str]
"""The namespace and the name of a service account."""


def decide(
    request: Request, evidence: Evidence, trust_domain: str, now: datetime, parts: frozenset[Account] = frozenset()
) -> Granted | Problem:
    """The same answer to the same question: a request that comes twice gets no more than it would have got once.

    `parts` are the accounts of the platform's own parts that run in the cluster: a part is who its account is.
    """
    asked, place = request.spec, request.metadata.namespace
    part = (place, asked.service_account_name) in parts
    why = next(_objections(request, evidence, part=part), "")
    if why:
        return Problem(
            IDENTITY_DENIED,
            f"{asked.pod_name} gets no certificate: {why}",
            Where(object=f"{place}/{asked.pod_name}"),
            next=f"pin get --project {place}",
        )
    begin = now.replace(microsecond=0) - SLACK
    renew = begin + timedelta(seconds=int(LIFE.total_seconds() * (0.5 + JITTER * _spread(request.metadata.uid))))
    name = asked.service_account_name.removeprefix(PREFIX) if part else asked.service_account_name
    return Granted(SpiffeId(trust_domain, (place, name)), begin, renew, begin + LIFE)


def _objections(request: Request, evidence: Evidence, *, part: bool) -> Iterator[str]:
    """Each in the words that the condition will say."""
    if request.spec.unverified_user_annotations:
        yield f"the signer knows no {', '.join(request.spec.unverified_user_annotations)}; leave userAnnotations out"
    if unknown := sorted(set(request.spec.usages) - USAGES):
        yield f"its certificate is not for {', '.join(unknown)}"
    if not request.known:
        yield "who asks is no pod: its token is not bound to one"
        return
    pod, account, workload = evidence.pod, evidence.account, evidence.workload
    if pod is None:
        yield "there is no such pod"
        return
    yield from _wrong_pod(request, pod)
    if account is None:
        yield f"there is no service account {request.spec.service_account_name}"
        return
    yield from _wrong_chain(pod, evidence.owners)
    native = evidence.owners[-1]
    if part:
        yield from _wrong_part(request, account, native)
        return
    if workload is None or workload.metadata.uid != native.metadata.controller:
        yield f"the workload that made its {native.kind} {native.metadata.name} is no more"
        return
    yield from _wrong_account(request, account, workload)
    yield from _wrong_workload(request, pod, native, workload)


def _wrong_pod(request: Request, pod: Bearer) -> Iterator[str]:
    asked = request.spec
    if pod.metadata.uid != asked.pod_uid:
        yield f"the pod of that name is another one by now, {pod.metadata.uid} and not {asked.pod_uid}"
    if not asked.node_name or pod.spec.node_name != asked.node_name:
        yield f"it runs on {pod.spec.node_name or 'no node'}, and {asked.node_name or 'no node'} asks for it"
    if pod.spec.service_account_name != asked.service_account_name:
        yield f"its service account is {pod.spec.service_account_name}, and not {asked.service_account_name}"
    if pod.status.phase in {"Succeeded", "Failed"}:
        yield "it has ended"


def _wrong_chain(pod: Bearer, owners: tuple[Link, ...]) -> Iterator[str]:
    """Names can be given to anything; a uid is given once."""
    if not owners:
        yield "no workload made it"
        return
    expected = pod.metadata.controller
    for each in owners:
        if each.metadata.uid != expected:
            yield f"{each.kind} {each.metadata.name} is not the one that made it"
        expected = each.metadata.controller
    kinds = tuple(f"{each.api_version} {each.kind}" for each in owners)
    if kinds not in CHAINS:
        yield f"no workload becomes what made it: {', '.join(kinds)}"


def _wrong_part(request: Request, account: Link, native: Link) -> Iterator[str]:
    """What makes the pods of a part is called as the part is."""
    yield from _another_account(request, account)
    if native.metadata.name != account.metadata.name:
        yield f"{native.kind} {native.metadata.name} made it, and not {account.metadata.name}"


def _another_account(request: Request, account: Link) -> Iterator[str]:
    if account.metadata.uid != request.spec.service_account_uid:
        yield f"the service account {account.metadata.name} is another one by now"


def _wrong_account(request: Request, account: Link, workload: Link) -> Iterator[str]:
    name = account.metadata.name
    yield from _another_account(request, account)
    if name != workload.metadata.name or account.metadata.controller != workload.metadata.uid:
        yield f"the service account {name} is not that of {workload.kind} {workload.metadata.name}"


def _wrong_workload(request: Request, pod: Bearer, native: Link, workload: Link) -> Iterator[str]:
    whose = {PROJECT: request.metadata.namespace, WORKLOAD: workload.metadata.name, KIND: workload.kind}
    name = f"{workload.kind} {workload.metadata.name}"
    if workload.api_version != API_VERSION:
        yield f"{name} is of {workload.api_version}, which is not ours"
    if workload.metadata.namespace != request.metadata.namespace:
        yield f"{name} is in another project"
    if workload.metadata.deletion_timestamp:
        yield f"{name} is being deleted"
    for what, labels in (("it", pod.metadata.labels), (f"its {native.kind}", native.metadata.labels)):
        for label, value in whose.items():
            if labels.get(label) != value:
                yield f"{what} has the label {label}={labels.get(label, '')}, and {value} is expected"


def _spread(uid: str) -> float:
    """From -1 to 1, as chance would have it, and always the same."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) / (1 << 31) - 1
