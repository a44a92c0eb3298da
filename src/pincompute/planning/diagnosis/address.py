"""Whether the address of a service leads to it: the ingress class exists, an ingress controller serves the
host, and its certificate is for the host.

An Ingress without a class is served by the platform's own ingress, if it has one, and otherwise by the controller of
the default class. A cluster without any of them has no ingress: there a service is ready without an address that leads
to it. The platform's own ingress reports each host that it serves in the status of the Ingress; of other controllers
any address in the status counts.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from pincompute.api.hosts import WILDCARD, normalize_host
from pincompute.api.service import PinterestService
from pincompute.api.status import READY, find_condition
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CERTIFICATE_EXPIRED,
    CERTIFICATE_MISMATCH,
    HOST_TAKEN,
    INGRESS_CLASS_UNKNOWN,
    INGRESS_NOT_RESPONDING,
)
from pincompute.objects.times import format_time
from pincompute.planning.diagnosis.excerpts import excerpt_start, join_first_few
from pincompute.planning.edit_commands import edit_command
from pincompute.planning.ingress_grants import tls_secret
from pincompute.planning.snapshot import IngressPoint, Native, Snapshot

_CLASS = "loadBalancer.class"
INGRESS_GRACE_S = 30.0
"""Time in which an ingress controller should have reported an Ingress, also on a machine that is short of CPU."""
ISSUE_GRACE_S = 300.0
"""Time in which cert-manager should have got a certificate. Challenges by DNS take minutes."""


class AddressFinding(NamedTuple):
    """Whether the address leads to the service. With neither a problem nor `awaited` it does."""

    problem: Problem | None = None
    awaited: str = ""
    """What is waited for, as the rest of a message."""
    recheck_after_s: float | None = None


SERVED = AddressFinding()


def check_address(snapshot: Snapshot, host: str) -> AddressFinding:
    """Check the address of a service with ready replicas. `host` is that of its Ingress."""
    owner: PinterestService = snapshot.owner
    if not owner.spec.has_ingress:
        return SERVED
    if problem := _class_problem(snapshot):
        return AddressFinding(problem)
    if not _has_controller(snapshot):
        return SERVED
    ingress = snapshot.owned_native("Ingress")
    points = _points(snapshot, ingress, normalize_host(host))
    if any(port.error for point in points for port in point.ports):
        return AddressFinding(_taken_problem(snapshot, host))
    return _certificate_finding(snapshot, host, ingress) if points else _unserved_finding(snapshot, host, ingress)


def _class_problem(snapshot: Snapshot) -> Problem | None:
    owner: PinterestService = snapshot.owner
    known, wanted = snapshot.ingress_classes, owner.spec.load_balancer.class_
    if not wanted or known is None or wanted in known:
        return None
    return Problem(
        INGRESS_CLASS_UNKNOWN,
        f"the cluster has no ingress class '{wanted}'",
        Where(object=owner.metadata.key, field="spec.loadBalancer.class"),
        note=f"its classes: {join_first_few(known)}" if known else "it has no classes",
        next=edit_command(owner, {_CLASS: known[0]}) if known else edit_command(owner, removals=[_CLASS]),
    )


def _has_controller(snapshot: Snapshot) -> bool:
    """Whether a known controller should serve the Ingress."""
    return _is_served_by_own_ingress(snapshot) or bool(snapshot.ingress_classes)


def _points(snapshot: Snapshot, ingress: Native | None, host: str) -> list[IngressPoint]:
    """Addresses that the controller has reported; of the platform's own ingress those of this host."""
    found = ingress.status.load_balancer.ingress if ingress else []
    if not _is_served_by_own_ingress(snapshot):
        return found
    return [each for each in found if each.hostname == host]


def _is_served_by_own_ingress(snapshot: Snapshot) -> bool:
    return snapshot.cluster.own_ingress and not snapshot.owner.spec.load_balancer.class_


def _taken_problem(snapshot: Snapshot, host: str) -> Problem:
    """Another Ingress was there first. Its name is left out, because it may belong to another project."""
    owner: PinterestService = snapshot.owner
    return Problem(
        HOST_TAKEN,
        f"the address {host}{owner.spec.load_balancer.path} is served by another Ingress",
        Where(object=owner.metadata.key, field="spec.loadBalancer"),
        note="an Ingress that is older, or of the project to which the host belongs, has it",
        next=f"kubectl get ingress -n {owner.metadata.namespace}, or choose another loadBalancer.host or path",
    )


def _certificate_finding(snapshot: Snapshot, host: str, ingress: Native | None) -> AddressFinding:
    """Whether the certificate of an address with TLS is for its host and has not expired. An unknown one is no problem.

    It changes without any event at its expiry.
    """
    owner: PinterestService = snapshot.owner
    seen, secret, issuer = snapshot.certificate, tls_secret(owner), owner.spec.load_balancer.issuer
    if not secret:
        return SERVED
    where = Where(object=owner.metadata.key, field=f"spec.loadBalancer.{'issuer' if issuer else 'tls'}")
    if seen is None:
        return _last_certificate_finding(owner, where)
    next_ = _certificate_command(owner, secret)
    if not any(_covers(name, normalize_host(host)) for name in seen.names):
        if issuer and (left_s := _grace_left_s(snapshot, ingress, ISSUE_GRACE_S)) > 0:
            return AddressFinding(awaited=f"waiting for {issuer} to certify {host}", recheck_after_s=left_s)
        names = join_first_few([excerpt_start(each) for each in seen.names]) if seen.names else "no host"
        what = f"{host} is served with a certificate for {names}"
        note = f"Secret {secret} is missing, is not of type kubernetes.io/tls, or is for another host"
        note = f"issuer {issuer} has stored none for it in Secret {secret}" if issuer else note
        return AddressFinding(Problem(CERTIFICATE_MISMATCH, what, where, note, next_))
    left_s = (seen.expires - snapshot.now).total_seconds()
    if left_s > 0:
        return AddressFinding(recheck_after_s=left_s)
    what = f"the certificate of {host} expired at {format_time(seen.expires)}"
    return AddressFinding(Problem(CERTIFICATE_EXPIRED, what, where, f"it is in Secret {secret}", next_))


def _certificate_command(owner: PinterestService, secret: str) -> str:
    """The command that stores another certificate, or tells why the issuer has stored none."""
    namespace = owner.metadata.namespace
    if owner.spec.load_balancer.issuer:
        return f"kubectl describe certificate {secret} -n {namespace}"
    store = f"kubectl create secret tls {secret} -n {namespace} --cert FILE --key FILE"
    return f"{store} --dry-run=client -o yaml | kubectl apply -f -"


def _last_certificate_finding(owner: PinterestService, where: Where) -> AddressFinding:
    """The problem that was found before: after a restart the operator does not know the certificate for some time."""
    before = find_condition(owner.status.conditions, READY)
    reasons = {each.code: each for each in (CERTIFICATE_EXPIRED, CERTIFICATE_MISMATCH)}
    if before is None or before.reason not in reasons or owner.status.observed_generation != owner.metadata.generation:
        return SERVED
    return AddressFinding(Problem(reasons[before.reason], before.message, where, next=owner.status.next))


def _covers(name: str, host: str) -> bool:
    """Whether a name of a certificate is the host; a wildcard stands for one label."""
    name = normalize_host(name)
    return name == host or (name.startswith(WILDCARD) and name[1:] == f".{host.partition('.')[2]}")


def _unserved_finding(snapshot: Snapshot, host: str, ingress: Native | None) -> AddressFinding:
    """Within the grace period the service makes progress; after it the controller has a problem."""
    owner: PinterestService = snapshot.owner
    left_s = _grace_left_s(snapshot, ingress, INGRESS_GRACE_S)
    if left_s > 0:
        return AddressFinding(awaited=f"waiting for the ingress to serve {host}", recheck_after_s=left_s)
    own = _is_served_by_own_ingress(snapshot)
    problem = Problem(
        INGRESS_NOT_RESPONDING,
        f"no ingress controller serves {host}",
        Where(object=owner.metadata.key, field="spec.loadBalancer"),
        note=f"its Ingress has waited since {format_time(_waiting_since(snapshot, ingress))}",
        next="pin status" if own else _foreign_command(snapshot),
    )
    return AddressFinding(problem)


def _grace_left_s(snapshot: Snapshot, ingress: Native | None, grace_s: float) -> float:
    return grace_s - (snapshot.now - _waiting_since(snapshot, ingress)).total_seconds()


def _waiting_since(snapshot: Snapshot, ingress: Native | None) -> datetime:
    """When the Ingress was created, or when the service was last ready, if that is later."""
    before = find_condition(snapshot.owner.status.conditions, READY)
    lost = before.last_transition_time if before and before.status == "False" else format_time(snapshot.now)
    created = ingress.metadata.creation_timestamp if ingress else ""
    return max(datetime.fromisoformat(each) for each in (lost, created) if each)


def _foreign_command(snapshot: Snapshot) -> str:
    owner: PinterestService = snapshot.owner
    describe = f"kubectl describe ingress {owner.metadata.name} -n {owner.metadata.namespace}"
    if owner.spec.load_balancer.class_ or not snapshot.ingress_classes:
        return describe
    # A controller need not serve Ingresses without a class, unless its class is the default one.
    return f"{describe}, or loadBalancer: {{class: {snapshot.ingress_classes[0]}}}"
