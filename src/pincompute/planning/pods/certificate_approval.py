"""Decides whether a pod gets the certificate of a workload, from the objects in the cluster.

Two kinds of requests arrive here: a node's request for one of its pods, and a pod's own request by token. Both are
reduced to the first kind. A certificate is granted only if the chain of controllers leads from the pod, by uid, over
objects of the expected kinds, to a workload of ours that owns the ServiceAccount. Names and labels alone prove nothing,
because members of a project may create pods with any of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pincompute.api.names import API_VERSION, KIND_LABEL, NAME_PREFIX, PROJECT_LABEL, WORKLOAD_LABEL
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import IDENTITY_DENIED
from pincompute.objects.spiffe import SpiffeId
from pincompute.planning.observed_pods import OwnedMetadata

CERTIFICATE_LIFETIME = timedelta(hours=1)
CLOCK_SKEW = timedelta(minutes=1)
"""Accepted difference between the clocks of a verifier and the signer."""
RENEWAL_JITTER = 0.05
"""Spread of renewals around half of the lifetime, as a share of it. Pods created together must not renew together."""

ALLOWED_USAGES = frozenset({"digital signature", "client auth", "server auth"})
"""Usages of a certificate. Requests for any other are denied."""

OWNER_CHAINS = {
    ("apps/v1 ReplicaSet", "apps/v1 Deployment"),
    ("apps/v1 StatefulSet",),
    ("apps/v1 DaemonSet",),
    ("batch/v1 Job",),
    ("batch/v1 Job", "batch/v1 CronJob"),
    ("kubeflow.org/v1 PyTorchJob",),
    ("kubeflow.org/v1 TFJob",),
}
"""Kinds of the objects between a pod and its workload, from the pod upwards."""

_SERVICE_ACCOUNT_USER_PREFIX = "system:serviceaccount:"


class PodCertificateRequestSpec(LenientStruct, frozen=True):
    signer_name: str
    pod_name: str
    node_name: str
    service_account_name: str
    pod_uid: str = msgspec.field(name="podUID")
    service_account_uid: str = msgspec.field(name="serviceAccountUID")
    key: bytes = msgspec.field(name="stubPKCS10Request", default=b"")
    """A PKCS#10 request, of which only the public key is used."""
    unverified_user_annotations: dict[str, str] = {}
    usages: list[str] = []
    """Requested usages, if the pod itself sent the request."""


class RequestCondition(LenientStruct, frozen=True):
    type: str
    status: str


class PodCertificateRequestStatus(LenientStruct, frozen=True):
    conditions: list[RequestCondition] = []


class PodCertificateRequest(LenientStruct, frozen=True):
    """A node's request for one of its pods."""

    metadata: Metadata
    spec: PodCertificateRequestSpec
    status: PodCertificateRequestStatus = PodCertificateRequestStatus()

    @property
    def identifies_pod(self) -> bool:
        """True if it names a pod and a service account."""
        return bool(self.metadata.namespace and self.spec.pod_name and self.spec.service_account_name)

    @property
    def answered(self) -> bool:
        """True if it was issued, denied or has failed. None of these is ever changed."""
        return any(each.status == "True" for each in self.status.conditions)


class CertificateSigningRequestSpec(LenientStruct, frozen=True):
    signer_name: str
    request: bytes
    usages: list[str] = []
    username: str = ""
    uid: str = ""
    extra: dict[str, list[str]] = {}
    """User name, uid and extra fields of the authenticated client. Only the API server can set them."""


class CertificateSigningRequestStatus(LenientStruct, frozen=True):
    conditions: list[RequestCondition] = []
    certificate: str = ""


class CertificateSigningRequest(LenientStruct, frozen=True):
    """A pod's request for itself, authenticated by its token, on clusters without certificate volumes."""

    metadata: Metadata
    spec: CertificateSigningRequestSpec
    status: CertificateSigningRequestStatus = CertificateSigningRequestStatus()

    @property
    def approved(self) -> bool:
        return any(each.type == "Approved" for each in self.status.conditions)

    @property
    def answered(self) -> bool:
        """True if it was issued, denied or has failed. An approval alone is no answer."""
        return bool(self.status.certificate) or any(
            each.type in {"Denied", "Failed"} for each in self.status.conditions
        )

    def to_pod_request(self) -> PodCertificateRequest:
        """The same request as the pod's node would send it. Fields that the token does not have stay empty."""
        head, _, account = self.spec.username.partition(_SERVICE_ACCOUNT_USER_PREFIX)
        namespace, _, name = account.partition(":") if not head else ("", "", "")
        spec = PodCertificateRequestSpec(
            signer_name=self.spec.signer_name,
            pod_name=self._token_field("pod-name"),
            pod_uid=self._token_field("pod-uid"),
            node_name=self._token_field("node-name"),
            service_account_name=name,
            service_account_uid=self.spec.uid,
            key=self.spec.request,
            usages=self.spec.usages,
        )
        return PodCertificateRequest(msgspec.structs.replace(self.metadata, namespace=namespace), spec)

    def _token_field(self, name: str) -> str:
        """Field of the token; empty if the token is not bound to a pod."""
        values = self.spec.extra.get(f"authentication.kubernetes.io/{name}", ())
        return values[0] if len(values) == 1 else ""


class IdentityPodSpec(LenientStruct, frozen=True):
    node_name: str = ""
    service_account_name: str = ""


class IdentityPodStatus(LenientStruct, frozen=True):
    phase: str = ""


class IdentityPod(LenientStruct, frozen=True):
    """Fields of a pod that identify it."""

    metadata: OwnedMetadata
    spec: IdentityPodSpec = IdentityPodSpec()
    status: IdentityPodStatus = IdentityPodStatus()


class OwnedObject(LenientStruct, frozen=True):
    """Any object in a chain of owners: a native object, a service account or a workload."""

    metadata: OwnedMetadata
    kind: str = ""
    api_version: str = ""


class RequestEvidence(NamedTuple):
    """Objects in the cluster that a request refers to; None if one does not exist."""

    pod: IdentityPod | None
    account: OwnedObject | None
    owners: tuple[OwnedObject, ...] = ()
    """From the pod's controller up to the workload's native object, as far as they exist."""
    workload: OwnedObject | None = None


class CertificateGrant(NamedTuple):
    """Content of a certificate."""

    spiffe_id: SpiffeId
    not_before: datetime
    begin_refresh_at: datetime
    not_after: datetime


ServiceAccountKey = tuple[str, str]
"""Namespace and name of a service account."""


def decide_certificate(
    request: PodCertificateRequest,
    evidence: RequestEvidence,
    trust_domain: str,
    now: datetime,
    parts: frozenset[ServiceAccountKey] = frozenset(),
) -> CertificateGrant | Problem:
    """Grant or deny a certificate. The same request gets the same answer, so that a repetition gains nothing.

    `parts` are the service accounts of the platform's own components in the cluster, which belong to no workload.
    """
    spec, namespace = request.spec, request.metadata.namespace
    part = (namespace, spec.service_account_name) in parts
    objection = next(_objections(request, evidence, part=part), "")
    if objection:
        return Problem(
            IDENTITY_DENIED,
            f"certificate denied for {spec.pod_name}: {objection}",
            Where(object=f"{namespace}/{spec.pod_name}"),
            next=f"pin get --project {namespace}",
        )
    not_before = now.replace(microsecond=0) - CLOCK_SKEW
    share = 0.5 + RENEWAL_JITTER * _spread(request.metadata.uid)
    refresh_at = not_before + timedelta(seconds=int(CERTIFICATE_LIFETIME.total_seconds() * share))
    name = spec.service_account_name.removeprefix(NAME_PREFIX) if part else spec.service_account_name
    spiffe_id = SpiffeId(trust_domain, (namespace, name))
    return CertificateGrant(spiffe_id, not_before, refresh_at, not_before + CERTIFICATE_LIFETIME)


def _objections(request: PodCertificateRequest, evidence: RequestEvidence, *, part: bool) -> Iterator[str]:
    """Reasons to deny the certificate, as text for the condition."""
    if request.spec.unverified_user_annotations:
        names = ", ".join(request.spec.unverified_user_annotations)
        yield f"unsupported user annotations {names}: remove userAnnotations"
    if unknown := sorted(set(request.spec.usages) - ALLOWED_USAGES):
        yield f"usage {', '.join(unknown)} is not allowed"
    if not request.identifies_pod:
        yield "the token is not bound to a pod"
        return
    pod, account, workload = evidence.pod, evidence.account, evidence.workload
    if pod is None:
        yield "no such pod"
        return
    yield from _wrong_pod(request, pod)
    if account is None:
        yield f"no service account {request.spec.service_account_name}"
        return
    yield from _wrong_chain(pod, evidence.owners)
    native = evidence.owners[-1]
    if part:
        yield from _wrong_part(request, account, native)
        return
    if workload is None or workload.metadata.uid != native.metadata.controller_uid:
        yield f"the workload of its {native.kind} {native.metadata.name} was deleted"
        return
    yield from _wrong_account(request, account, workload)
    yield from _wrong_workload(request, pod, native, workload)


def _wrong_pod(request: PodCertificateRequest, pod: IdentityPod) -> Iterator[str]:
    spec = request.spec
    if pod.metadata.uid != spec.pod_uid:
        yield f"the pod was recreated: its uid is {pod.metadata.uid}, requested for {spec.pod_uid}"
    if not spec.node_name or pod.spec.node_name != spec.node_name:
        yield f"it runs on {pod.spec.node_name or 'no node'}, requested by {spec.node_name or 'no node'}"
    if pod.spec.service_account_name != spec.service_account_name:
        yield f"its service account is {pod.spec.service_account_name}, requested for {spec.service_account_name}"
    if pod.status.phase in {"Succeeded", "Failed"}:
        yield "it has ended"


def _wrong_chain(pod: IdentityPod, owners: tuple[OwnedObject, ...]) -> Iterator[str]:
    """Compares uids, because an object of the same name may be another one."""
    if not owners:
        yield "no workload created it"
        return
    expected_uid = pod.metadata.controller_uid
    for owner in owners:
        if owner.metadata.uid != expected_uid:
            yield f"{owner.kind} {owner.metadata.name} did not create it: another uid"
        expected_uid = owner.metadata.controller_uid
    kinds = tuple(f"{owner.api_version} {owner.kind}" for owner in owners)
    if kinds not in OWNER_CHAINS:
        yield f"no workload has owners of these kinds: {', '.join(kinds)}"


def _wrong_part(request: PodCertificateRequest, account: OwnedObject, native: OwnedObject) -> Iterator[str]:
    """The native object of a platform component has the name of its service account."""
    yield from _recreated_account(request, account)
    if native.metadata.name != account.metadata.name:
        yield f"{native.kind} {native.metadata.name} created it, expected {account.metadata.name}"


def _recreated_account(request: PodCertificateRequest, account: OwnedObject) -> Iterator[str]:
    if account.metadata.uid != request.spec.service_account_uid:
        yield f"service account {account.metadata.name} was recreated: another uid"


def _wrong_account(request: PodCertificateRequest, account: OwnedObject, workload: OwnedObject) -> Iterator[str]:
    name = account.metadata.name
    yield from _recreated_account(request, account)
    if name != workload.metadata.name or account.metadata.controller_uid != workload.metadata.uid:
        yield f"service account {name} does not belong to {workload.kind} {workload.metadata.name}"


def _wrong_workload(
    request: PodCertificateRequest, pod: IdentityPod, native: OwnedObject, workload: OwnedObject
) -> Iterator[str]:
    expected = {
        PROJECT_LABEL: request.metadata.namespace,
        WORKLOAD_LABEL: workload.metadata.name,
        KIND_LABEL: workload.kind,
    }
    name = f"{workload.kind} {workload.metadata.name}"
    if workload.api_version != API_VERSION:
        yield f"{name} has apiVersion {workload.api_version}, expected {API_VERSION}"
    if workload.metadata.namespace != request.metadata.namespace:
        yield f"{name} is in another project"
    if workload.metadata.deletion_timestamp:
        yield f"{name} is being deleted"
    for subject, labels in (("it", pod.metadata.labels), (f"its {native.kind}", native.metadata.labels)):
        for label, value in expected.items():
            if labels.get(label) != value:
                yield f"{subject} has label {label}={labels.get(label, '')}, expected {value}"


def _spread(uid: str) -> float:
    """Number from -1 to 1, derived from the uid: evenly distributed, and the same in every pass."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) / (1 << 31) - 1
