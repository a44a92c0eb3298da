"""Certificate decisions: one complete case that is granted, and variants with one flaw each that are denied."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from pincompute.base.problem import Problem
from pincompute.objects.spiffe import SpiffeId
from pincompute.planning.pods.certificate_approval import (
    CERTIFICATE_LIFETIME,
    CLOCK_SKEW,
    OWNER_CHAINS,
    CertificateGrant,
    CertificateSigningRequest,
    IdentityPod,
    OwnedObject,
    PodCertificateRequest,
    RequestEvidence,
    ServiceAccountKey,
    decide_certificate,
)

NOW = datetime(2026, 11, 21, 12, 0, 0, 700_000, tzinfo=UTC)
DOMAIN = "test.pincompute.local"
LABELS = {"pinterest.com/project": "me", "pinterest.com/workload": "web", "pinterest.com/kind": "PinterestService"}
DEPLOYMENT = ("apps/v1 ReplicaSet", "apps/v1 Deployment")


class Case:
    """All evidence of a decision as JSON, which tests modify."""

    def __init__(self, chain: tuple[str, ...] = DEPLOYMENT) -> None:
        self.request: dict[str, Any] = {
            "metadata": {"name": "web-1-abc", "namespace": "me", "uid": "request-1"},
            "spec": {
                "signerName": "pinterest.com/identity", "podName": "web-1", "podUID": "pod-1", "nodeName": "node-1",
                "serviceAccountName": "web", "serviceAccountUID": "account-1", "stubPKCS10Request": "AAAA",
            },
        }  # fmt: skip
        self.workload = build_object("pinterest.com/v1 PinterestService", "web", "workload-1")
        uids = [f"owner-{number}" for number in range(len(chain))]
        self.owners = [
            build_object(kind, "web", uid, above, labels=LABELS)
            for kind, uid, above in zip(chain, uids, [*uids[1:], "workload-1"], strict=True)
        ]
        self.account = build_object("v1 ServiceAccount", "web", "account-1", "workload-1")
        self.pod = build_object("v1 Pod", "web-1", "pod-1", uids[0], labels=LABELS)
        self.pod |= {"spec": {"nodeName": "node-1", "serviceAccountName": "web"}, "status": {"phase": "Pending"}}
        self.missing: set[str] = set()

    def decide(
        self,
        now: datetime = NOW,
        request: PodCertificateRequest | None = None,
        parts: frozenset[ServiceAccountKey] = frozenset(),
    ) -> CertificateGrant | Problem:
        evidence = RequestEvidence(
            None if "pod" in self.missing else msgspec.convert(self.pod, IdentityPod),
            None if "account" in self.missing else msgspec.convert(self.account, OwnedObject),
            tuple(msgspec.convert(each, OwnedObject) for each in self.owners),
            None if "workload" in self.missing else msgspec.convert(self.workload, OwnedObject),
        )
        return decide_certificate(
            request or msgspec.convert(self.request, PodCertificateRequest), evidence, DOMAIN, now, parts
        )


def build_object(
    kind: str, name: str, uid: str, above: str = "", *, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    version, _, kind = kind.rpartition(" ")
    owners = [{"uid": "other", "controller": False}, *([{"uid": above, "controller": True}] if above else [])]
    metadata = {"name": name, "namespace": "me", "uid": uid, "ownerReferences": owners, "labels": dict(labels or {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@pytest.mark.parametrize("chain", sorted(OWNER_CHAINS), ids=" ".join)
def test_grants_certificate_to_pod_of_a_workload(chain: tuple[str, ...]) -> None:
    granted = Case(chain).decide()
    assert isinstance(granted, CertificateGrant)
    assert granted.spiffe_id == SpiffeId(DOMAIN, ("me", "web"))


PARTS = frozenset({("pincompute-system", "pincompute-log-store")})


def part() -> Case:
    """The log store, running as a pod of the cluster."""
    case = Case(("apps/v1 StatefulSet",))
    case.missing.add("workload")
    case.request["metadata"] |= {"namespace": "pincompute-system"}
    case.request["spec"] |= {"serviceAccountName": "pincompute-log-store"}
    case.pod["spec"] |= {"serviceAccountName": "pincompute-log-store"}
    case.account = build_object("v1 ServiceAccount", "pincompute-log-store", "account-1")
    case.owners = [build_object("apps/v1 StatefulSet", "pincompute-log-store", "owner-0")]
    return case


def test_grants_certificate_to_platform_component() -> None:
    granted = part().decide(parts=PARTS)
    assert isinstance(granted, CertificateGrant)
    assert granted.spiffe_id == SpiffeId(DOMAIN, ("pincompute-system", "log-store"))


def test_denies_platform_component_if_the_platform_runs_outside() -> None:
    denied = part().decide()
    assert isinstance(denied, Problem)
    assert "the workload of its StatefulSet pincompute-log-store was deleted" in denied.what


@pytest.mark.parametrize(
    ("field", "fields", "message"),
    [
        ("account", {"uid": "another"}, "service account pincompute-log-store was recreated"),
        ("pod", {"uid": "another"}, "the pod was recreated"),
        ("pod", {"ownerReferences": []}, "StatefulSet pincompute-log-store did not create it"),
    ],
)
def test_denies_platform_component_with_wrong_uid(field: str, fields: dict[str, Any], message: str) -> None:
    case = part()
    getattr(case, field)["metadata"].update(fields)
    denied = case.decide(parts=PARTS)
    assert isinstance(denied, Problem)
    assert message in denied.what


def test_denies_platform_component_of_an_object_of_another_name() -> None:
    case = part()
    case.owners[0]["metadata"]["name"] = "other"
    denied = case.decide(parts=PARTS)
    assert isinstance(denied, Problem)
    assert "StatefulSet other created it, expected pincompute-log-store" in denied.what


def change(field: str, **fields: Any) -> Callable[[Case], object]:
    """Change fields of an object such as `pod.metadata` or `owners.0.metadata`."""

    def do(case: Case) -> None:
        name, *path = field.split(".")
        value = getattr(case, name)
        for key in path:
            value = value[int(key)] if key.isdigit() else value[key]
        value.update(fields)

    return do


def drop(name: str) -> Callable[[Case], object]:
    return lambda case: case.missing.add(name)


def cut(last: int) -> Callable[[Case], object]:
    return lambda case: case.owners.__delitem__(slice(last, None))


def both(*changes: Callable[[Case], object]) -> Callable[[Case], object]:
    return lambda case: [each(case) for each in changes]


FORGED = [{"uid": "workload-1", "controller": True}]
DAEMON = {"pinterest.com/kind": "PinterestDaemon"}
OTHER = LABELS | {"pinterest.com/workload": "api"}
DENIED: dict[str, tuple[Callable[[Case], object], str]] = {
    "user-annotations": (
        change("request.spec", unverifiedUserAnnotations={"example.com/name": "api"}),
        "unsupported user annotations example.com/name",
    ),
    "pod-missing": (drop("pod"), "no such pod"),
    "pod-recreated": (change("pod.metadata", uid="pod-2"), "the pod was recreated"),
    "pod-on-another-node": (change("pod.spec", nodeName="node-2"), "runs on node-2, requested by node-1"),
    "pod-on-no-node": (change("pod.spec", nodeName=""), "runs on no node"),
    "requested-by-no-node": (
        both(change("pod.spec", nodeName=""), change("request.spec", nodeName="")),
        "requested by no node",
    ),
    "another-account": (change("pod.spec", serviceAccountName="default"), "account is default, requested for web"),
    "pod-succeeded": (change("pod.status", phase="Succeeded"), "has ended"),
    "pod-failed": (change("pod.status", phase="Failed"), "has ended"),
    "account-missing": (drop("account"), "no service account web"),
    "account-recreated": (change("account.metadata", uid="account-2"), "account web was recreated"),
    "account-without-owner": (change("account.metadata", ownerReferences=[]), "does not belong to"),
    "account-of-another-name": (change("account.metadata", name="web-too"), "does not belong to"),
    "pod-without-owner": (cut(0), "no workload created it"),
    "pod-with-forged-owner": (
        both(change("pod.metadata", ownerReferences=FORGED), cut(0)),
        "no workload created it",
    ),
    "pod-not-of-the-replica-set": (change("pod.metadata", ownerReferences=[]), "ReplicaSet web did not create it"),
    "replica-set-without-deployment": (cut(1), "no workload has owners of these kinds: apps/v1 ReplicaSet"),
    "replica-set-of-another": (change("owners.0.metadata", ownerReferences=[]), "Deployment web did not create it"),
    "deployment-without-owner": (change("owners.1.metadata", ownerReferences=[]), "Deployment web was deleted"),
    "foreign-deployment-kind": (change("owners.1", apiVersion="example.com/v1"), "no workload has owners"),
    "workload-missing": (drop("workload"), "the workload of its Deployment web was deleted"),
    "workload-recreated": (change("workload.metadata", uid="workload-2"), "was deleted"),
    "workload-being-deleted": (change("workload.metadata", deletionTimestamp="2026-11-21"), "is being deleted"),
    "workload-of-another-project": (change("workload.metadata", namespace="you"), "is in another project"),
    "workload-of-another-version": (change("workload", apiVersion="pinterest.com/v9"), "expected pinterest.com/v1"),
    "pod-labelled-as-another": (change("pod.metadata", labels=OTHER), "workload=api, expected web"),
    "pod-without-labels": (change("pod.metadata", labels={}), "project=, expected me"),
    "deployment-without-labels": (change("owners.1.metadata", labels={}), "its Deployment has label"),
    "pod-labelled-as-another-kind": (change("pod.metadata", labels=LABELS | DAEMON), "kind=PinterestDaemon"),
}


@pytest.mark.parametrize(("apply_change", "message"), DENIED.values(), ids=DENIED)
def test_denies_certificate_of_pod(apply_change: Callable[[Case], object], message: str) -> None:
    case = Case()
    apply_change(case)
    denied = case.decide()
    assert isinstance(denied, Problem)
    assert denied.reason.code == "IdentityDenied"
    assert message in denied.what
    assert str(denied.where) == "me/web-1"


def test_lasts_an_hour_and_spreads_renewals_around_half_of_it() -> None:
    renewals = set()
    for number in range(200):
        case = Case()
        case.request["metadata"]["uid"] = f"request-{number}"
        granted = case.decide()
        assert isinstance(granted, CertificateGrant)
        assert granted.not_before == NOW.replace(microsecond=0) - CLOCK_SKEW
        assert granted.not_after - granted.not_before == CERTIFICATE_LIFETIME == timedelta(hours=1)
        renewals.add((granted.begin_refresh_at - granted.not_before) / CERTIFICATE_LIFETIME)
    assert 0.45 <= min(renewals) < 0.46
    assert 0.54 < max(renewals) <= 0.55
    assert len(renewals) > 100


def test_same_request_gets_same_answer() -> None:
    assert Case().decide() == Case().decide()
    later = Case().decide(NOW + timedelta(seconds=0.2))
    assert later == Case().decide()


TOKEN = {"pod-name": "web-1", "pod-uid": "pod-1", "node-name": "node-1", "credential-id": "JTI=1"}
ACCOUNT = "system:serviceaccount:me:web"
USAGES = ["digital signature", "client auth", "server auth"]


def token_request(
    token: dict[str, str] = TOKEN, username: str = ACCOUNT, uid: str = "account-1", usages: list[str] = USAGES
) -> PodCertificateRequest:
    extra = {f"authentication.kubernetes.io/{name}": [value] for name, value in token.items()}
    spec = {"signerName": "pinterest.com/identity", "request": "AAAA", "usages": usages}
    spec |= {"username": username, "uid": uid, "extra": extra}
    metadata = {"name": "web-1-xyz", "uid": "request-2"}
    return msgspec.convert({"metadata": metadata, "spec": spec}, CertificateSigningRequest).to_pod_request()


def test_pod_request_by_token_gets_the_same_as_by_its_node() -> None:
    granted = Case().decide(request=token_request())
    assert isinstance(granted, CertificateGrant)
    assert granted.spiffe_id == SpiffeId(DOMAIN, ("me", "web"))
    assert granted.not_after - granted.not_before == CERTIFICATE_LIFETIME


DENIED_TOKENS: dict[str, tuple[PodCertificateRequest, str]] = {
    "not-bound-to-a-pod": (token_request({}), "the token is not bound"),
    "of-a-person": (token_request(username="ann"), "the token is not bound"),
    "similar-username": (token_request(username=f"x{ACCOUNT}"), "the token is not bound"),
    "of-another-pod-of-its-name": (token_request(TOKEN | {"pod-uid": "pod-2"}), "the pod was recreated"),
    "of-another-node": (token_request(TOKEN | {"node-name": "node-2"}), "runs on node-1, requested by node-2"),
    "without-node": (token_request({k: v for k, v in TOKEN.items() if k != "node-name"}), "requested by no node"),
    "of-another-account": (token_request(username="system:serviceaccount:me:api"), "account is web, requested for api"),
    "of-a-recreated-account": (token_request(uid="account-2"), "account web was recreated"),
    "with-another-usage": (token_request(usages=[*USAGES, "cert sign"]), "usage cert sign is not allowed"),
}


@pytest.mark.parametrize(("request_", "message"), DENIED_TOKENS.values(), ids=DENIED_TOKENS)
def test_denies_certificate_by_token(request_: PodCertificateRequest, message: str) -> None:
    denied = Case().decide(request=request_)
    assert isinstance(denied, Problem)
    assert message in denied.what


def test_denies_token_of_another_project() -> None:
    case = Case()
    request = token_request(username="system:serviceaccount:you:web")
    assert request.metadata.namespace == "you"
    denied = case.decide(request=request)
    assert isinstance(denied, Problem)
    assert "is in another project" in denied.what


@pytest.mark.parametrize(
    ("status", "answered"),
    [
        ({}, False),
        ({"conditions": [{"type": "Approved", "status": "True"}]}, False),
        ({"conditions": [{"type": "Denied", "status": "True"}]}, True),
        ({"conditions": [{"type": "Approved", "status": "True"}], "certificate": "AAAA"}, True),
    ],
)
def test_approval_alone_is_no_answer(status: dict[str, Any], answered: bool) -> None:
    spec = {"signerName": "pinterest.com/identity", "request": "AAAA"}
    request = msgspec.convert({"metadata": {"name": "a"}, "spec": spec, "status": status}, CertificateSigningRequest)
    assert request.answered is answered
