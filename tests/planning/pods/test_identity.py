"""Who is given a workload's certificate: one who has everything, and all who lack one thing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from pincompute.base.problem import Problem
from pincompute.objects.spiffe import SpiffeId
from pincompute.planning.pods.identity import (
    CHAINS,
    LIFE,
    SLACK,
    Account,
    Bearer,
    Evidence,
    Granted,
    Link,
    Request,
    SigningRequest,
    decide,
)

NOW = datetime(2026, 11, 21, 12, 0, 0, 700_000, tzinfo=UTC)
DOMAIN = "test.pincompute.local"
LABELS = {"pinterest.com/project": "me", "pinterest.com/workload": "web", "pinterest.com/kind": "PinterestService"}
DEPLOYMENT = ("apps/v1 ReplicaSet", "apps/v1 Deployment")


class Case:
    """Everything that is looked at, as JSON that a test spoils."""

    def __init__(self, chain: tuple[str, ...] = DEPLOYMENT) -> None:
        self.request: dict[str, Any] = {
            "metadata": {"name": "web-1-abc", "namespace": "me", "uid": "request-1"},
            "spec": {
                "signerName": "pinterest.com/identity", "podName": "web-1", "podUID": "pod-1", "nodeName": "node-1",
                "serviceAccountName": "web", "serviceAccountUID": "account-1", "stubPKCS10Request": "AAAA",
            },
        }  # fmt: skip
        self.workload = thing("pinterest.com/v1 PinterestService", "web", "workload-1")
        uids = [f"owner-{number}" for number in range(len(chain))]
        self.owners = [
            thing(kind, "web", uid, above, labels=LABELS)
            for kind, uid, above in zip(chain, uids, [*uids[1:], "workload-1"], strict=True)
        ]
        self.account = thing("v1 ServiceAccount", "web", "account-1", "workload-1")
        self.pod = thing("v1 Pod", "web-1", "pod-1", uids[0], labels=LABELS)
        self.pod |= {"spec": {"nodeName": "node-1", "serviceAccountName": "web"}, "status": {"phase": "Pending"}}
        self.gone: set[str] = set()

    def decided(
        self, now: datetime = NOW, request: Request | None = None, parts: frozenset[Account] = frozenset()
    ) -> Granted | Problem:
        evidence = Evidence(
            None if "pod" in self.gone else msgspec.convert(self.pod, Bearer),
            None if "account" in self.gone else msgspec.convert(self.account, Link),
            tuple(msgspec.convert(each, Link) for each in self.owners),
            None if "workload" in self.gone else msgspec.convert(self.workload, Link),
        )
        return decide(request or msgspec.convert(self.request, Request), evidence, DOMAIN, now, parts)


def thing(kind: str, name: str, uid: str, above: str = "", *, labels: dict[str, str] | None = None) -> dict[str, Any]:
    version, _, kind = kind.rpartition(" ")
    owners = [{"uid": "somebody", "controller": False}, *([{"uid": above, "controller": True}] if above else [])]
    metadata = {"name": name, "namespace": "me", "uid": uid, "ownerReferences": owners, "labels": dict(labels or {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@pytest.mark.parametrize("chain", sorted(CHAINS), ids=" ".join)
def test_a_pod_that_a_workload_made_is_who_it_is(chain: tuple[str, ...]) -> None:
    granted = Case(chain).decided()
    assert isinstance(granted, Granted)
    assert granted.who == SpiffeId(DOMAIN, ("me", "web"))


PARTS = frozenset({("pincompute-system", "pincompute-log-store")})


def part() -> Case:
    """The store of logs, as a pod of the cluster."""
    case = Case(("apps/v1 StatefulSet",))
    case.gone.add("workload")
    case.request["metadata"] |= {"namespace": "pincompute-system"}
    case.request["spec"] |= {"serviceAccountName": "pincompute-log-store"}
    case.pod["spec"] |= {"serviceAccountName": "pincompute-log-store"}
    case.account = thing("v1 ServiceAccount", "pincompute-log-store", "account-1")
    case.owners = [thing("apps/v1 StatefulSet", "pincompute-log-store", "owner-0")]
    return case


def test_a_part_of_the_platform_is_who_its_account_is() -> None:
    granted = part().decided(parts=PARTS)
    assert isinstance(granted, Granted)
    assert granted.who == SpiffeId(DOMAIN, ("pincompute-system", "log-store"))


def test_where_the_platform_runs_outside_nobody_is_a_part_of_it() -> None:
    denied = part().decided()
    assert isinstance(denied, Problem)
    assert "the workload that made its StatefulSet pincompute-log-store is no more" in denied.what


@pytest.mark.parametrize(
    ("field", "fields", "words"),
    [
        ("account", {"uid": "another"}, "the service account pincompute-log-store is another one by now"),
        ("pod", {"uid": "another"}, "the pod of that name is another one by now"),
        ("pod", {"ownerReferences": []}, "StatefulSet pincompute-log-store is not the one that made it"),
    ],
)
def test_of_a_part_as_much_must_hold_as_of_anybody(field: str, fields: dict[str, Any], words: str) -> None:
    case = part()
    getattr(case, field)["metadata"].update(fields)
    denied = case.decided(parts=PARTS)
    assert isinstance(denied, Problem)
    assert words in denied.what


def test_what_makes_the_pods_of_a_part_is_called_as_it_is() -> None:
    case = part()
    case.owners[0]["metadata"]["name"] = "stranger"
    denied = case.decided(parts=PARTS)
    assert isinstance(denied, Problem)
    assert "StatefulSet stranger made it, and not pincompute-log-store" in denied.what


def spoil(field: str, **fields: Any) -> Callable[[Case], object]:
    """Of `pod.metadata` some fields, or of `owners.0.metadata`."""

    def do(case: Case) -> None:
        name, *path = field.split(".")
        value = getattr(case, name)
        for each in path:
            value = value[int(each)] if each.isdigit() else value[each]
        value.update(fields)

    return do


def drop(name: str) -> Callable[[Case], object]:
    return lambda case: case.gone.add(name)


def cut(last: int) -> Callable[[Case], object]:
    return lambda case: case.owners.__delitem__(slice(last, None))


def both(*spoiling: Callable[[Case], object]) -> Callable[[Case], object]:
    return lambda case: [each(case) for each in spoiling]


FORGED = [{"uid": "workload-1", "controller": True}]
DAEMON = {"pinterest.com/kind": "PinterestDaemon"}
OTHER = LABELS | {"pinterest.com/workload": "api"}
DENIED: dict[str, tuple[Callable[[Case], object], str]] = {
    "asks for more": (spoil("request.spec", unverifiedUserAnnotations={"example.com/name": "api"}), "knows no"),
    "is nowhere": (drop("pod"), "no such pod"),
    "is another by now": (spoil("pod.metadata", uid="pod-2"), "another one by now"),
    "runs elsewhere": (spoil("pod.spec", nodeName="node-2"), "runs on node-2, and node-1 asks"),
    "runs nowhere": (spoil("pod.spec", nodeName=""), "runs on no node"),
    "is asked for by nobody": (
        both(spoil("pod.spec", nodeName=""), spoil("request.spec", nodeName="")),
        "no node asks",
    ),
    "has another account": (spoil("pod.spec", serviceAccountName="default"), "account is default, and not web"),
    "has ended": (spoil("pod.status", phase="Succeeded"), "has ended"),
    "has failed": (spoil("pod.status", phase="Failed"), "has ended"),
    "has an account that is nowhere": (drop("account"), "no service account web"),
    "has an account that was made anew": (spoil("account.metadata", uid="account-2"), "account web is another one"),
    "has an account that somebody made": (spoil("account.metadata", ownerReferences=[]), "not that of"),
    "has another of its workload's accounts": (spoil("account.metadata", name="web-too"), "not that of"),
    "was made by hand": (cut(0), "no workload made it"),
    "says that a workload made it": (
        both(spoil("pod.metadata", ownerReferences=FORGED), cut(0)),
        "no workload made it",
    ),
    "says that another's ReplicaSet made it": (spoil("pod.metadata", ownerReferences=[]), "ReplicaSet web is not"),
    "was made by what somebody made": (cut(1), "no workload becomes what made it: apps/v1 ReplicaSet"),
    "was made by another's Deployment": (spoil("owners.0.metadata", ownerReferences=[]), "Deployment web is not"),
    "was made by a Deployment of nobody's": (spoil("owners.1.metadata", ownerReferences=[]), "is no more"),
    "was made by what is not ours": (spoil("owners.1", apiVersion="example.com/v1"), "no workload becomes"),
    "outlives its workload": (drop("workload"), "Deployment web is no more"),
    "is of a workload that was made anew": (spoil("workload.metadata", uid="workload-2"), "is no more"),
    "is of a workload that goes": (spoil("workload.metadata", deletionTimestamp="2026-11-21"), "is being deleted"),
    "is of another project": (spoil("workload.metadata", namespace="you"), "is in another project"),
    "is of what only looks like a workload": (spoil("workload", apiVersion="pinterest.com/v9"), "is not ours"),
    "says that it is another's": (spoil("pod.metadata", labels=OTHER), "workload=api, and web is expected"),
    "says nothing": (spoil("pod.metadata", labels={}), "project=, and me is expected"),
    "was made by what says nothing": (spoil("owners.1.metadata", labels={}), "its Deployment has the label"),
    "says it is of another kind": (spoil("pod.metadata", labels=LABELS | DAEMON), "kind=PinterestDaemon"),
}


@pytest.mark.parametrize(("spoiled", "words"), DENIED.values(), ids=DENIED)
def test_a_pod_gets_none_that(spoiled: Callable[[Case], object], words: str) -> None:
    case = Case()
    spoiled(case)
    denied = case.decided()
    assert isinstance(denied, Problem)
    assert denied.reason.code == "IdentityDenied"
    assert words in denied.what
    assert str(denied.where) == "me/web-1"


def test_it_lasts_an_hour_and_is_renewed_at_half_of_it_apart_from_others() -> None:
    renewals = set()
    for number in range(200):
        case = Case()
        case.request["metadata"]["uid"] = f"request-{number}"
        granted = case.decided()
        assert isinstance(granted, Granted)
        assert granted.begin == NOW.replace(microsecond=0) - SLACK
        assert granted.end - granted.begin == LIFE == timedelta(hours=1)
        renewals.add((granted.renew - granted.begin) / LIFE)
    assert 0.45 <= min(renewals) < 0.46
    assert 0.54 < max(renewals) <= 0.55
    assert len(renewals) > 100


def test_the_same_request_gets_the_same_answer() -> None:
    assert Case().decided() == Case().decided()
    later = Case().decided(NOW + timedelta(seconds=0.2))
    assert later == Case().decided()


TOKEN = {"pod-name": "web-1", "pod-uid": "pod-1", "node-name": "node-1", "credential-id": "JTI=1"}
ACCOUNT = "system:serviceaccount:me:web"
USAGES = ["digital signature", "client auth", "server auth"]


def by_itself(
    token: dict[str, str] = TOKEN, username: str = ACCOUNT, uid: str = "account-1", usages: list[str] = USAGES
) -> Request:
    extra = {f"authentication.kubernetes.io/{name}": [value] for name, value in token.items()}
    spec = {"signerName": "pinterest.com/identity", "request": "AAAA", "usages": usages}
    spec |= {"username": username, "uid": uid, "extra": extra}
    metadata = {"name": "web-1-xyz", "uid": "request-2"}
    return msgspec.convert({"metadata": metadata, "spec": spec}, SigningRequest).of_pod()


def test_a_pod_that_asks_for_itself_is_given_what_its_node_would_be() -> None:
    granted = Case().decided(request=by_itself())
    assert isinstance(granted, Granted)
    assert granted.who == SpiffeId(DOMAIN, ("me", "web"))
    assert granted.end - granted.begin == LIFE


NOT_THEIRS: dict[str, tuple[Request, str]] = {
    "is of no pod": (by_itself({}), "its token is not bound"),
    "is of a person": (by_itself(username="ann"), "its token is not bound"),
    "is of who is called like an account": (by_itself(username=f"x{ACCOUNT}"), "its token is not bound"),
    "is of another pod of its name": (by_itself(TOKEN | {"pod-uid": "pod-2"}), "another one by now"),
    "was taken on another node": (by_itself(TOKEN | {"node-name": "node-2"}), "runs on node-1, and node-2 asks"),
    "says no node": (by_itself({k: v for k, v in TOKEN.items() if k != "node-name"}), "no node asks"),
    "is of another account": (by_itself(username="system:serviceaccount:me:api"), "account is web, and not api"),
    "is of an account that was made anew": (by_itself(uid="account-2"), "account web is another one"),
    "wants to sign others": (by_itself(usages=[*USAGES, "cert sign"]), "not for cert sign"),
}


@pytest.mark.parametrize(("request_", "words"), NOT_THEIRS.values(), ids=NOT_THEIRS)
def test_a_token_gets_none_that(request_: Request, words: str) -> None:
    denied = Case().decided(request=request_)
    assert isinstance(denied, Problem)
    assert words in denied.what


def test_a_token_of_another_project_is_of_another_project() -> None:
    case = Case()
    request = by_itself(username="system:serviceaccount:you:web")
    assert request.metadata.namespace == "you"
    denied = case.decided(request=request)
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
def test_that_it_was_approved_is_no_answer(status: dict[str, Any], answered: bool) -> None:
    spec = {"signerName": "pinterest.com/identity", "request": "AAAA"}
    asked = msgspec.convert({"metadata": {"name": "a"}, "spec": spec, "status": status}, SigningRequest)
    assert asked.answered is answered
