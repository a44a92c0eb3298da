"""Annotations and the issuer of a service's Ingress, each only if its project opens it.

The desk refuses a service by its plan, so that a service that was written past the desk is refused for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pincompute.api.ingress import (
    CERT_MANAGER_GROUP,
    IngressGrants,
    IssuerKind,
    annotation_value_reason,
    closed_key_reason,
)
from pincompute.api.project import Project
from pincompute.api.service import PinterestService
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import FORBIDDEN
from pincompute.planning import names
from pincompute.planning.diagnosis.excerpts import excerpt_start, join_first_few

_ISSUER_ANNOTATIONS = {
    IssuerKind.CLUSTER_ISSUER: f"{CERT_MANAGER_GROUP}/cluster-issuer",
    IssuerKind.ISSUER: f"{CERT_MANAGER_GROUP}/issuer",
}


def ingress_problems(owner: PinterestService, project: Project | None) -> tuple[Problem, ...]:
    """Why the Ingress cannot have its annotations or its issuer."""
    return tuple(_problems(owner, _grants(project))) if owner.spec.has_ingress else ()


def ingress_annotations(owner: PinterestService, project: Project | None) -> dict[str, str]:
    """Annotations of the Ingress. Everything in them is open, as the plan is refused otherwise."""
    balancer = owner.spec.load_balancer
    if not balancer.issuer:
        return balancer.annotations
    kind = _grants(project).issuers[balancer.issuer]
    return {**balancer.annotations, _ISSUER_ANNOTATIONS[kind]: balancer.issuer}


def tls_secret(owner: PinterestService) -> str:
    """Secret with the certificate of the address; empty without TLS. That of an issuer is named by the platform."""
    balancer = owner.spec.load_balancer
    return names.certificate(owner) if balancer.issuer else balancer.tls


def _grants(project: Project | None) -> IngressGrants:
    return project.spec.ingress if project else IngressGrants()


def _problems(owner: PinterestService, grants: IngressGrants) -> Iterator[Problem]:
    balancer, project = owner.spec.load_balancer, owner.metadata.namespace
    for key, value in sorted(balancer.annotations.items()):
        field = f"spec.loadBalancer.annotations.{excerpt_start(key)}"
        if why := closed_key_reason(key) or annotation_value_reason(key, value):
            what = f"the Ingress cannot have the annotation {excerpt_start(key)}"
            yield _forbidden(owner, what, field, why, "remove it from loadBalancer.annotations")
        elif key not in grants.annotations:
            what = f"annotation {excerpt_start(key)} is not open to project {project}"
            next_ = f"remove it, or ask the infrastructure team for spec.ingress.annotations in project {project}"
            yield _forbidden(owner, what, field, f"open annotations: {_listed(grants.annotations)}", next_)
    if balancer.issuer and balancer.issuer not in grants.issuers:
        what = f"issuer {balancer.issuer} is not open to project {project}"
        next_ = f"remove it, or ask the infrastructure team for spec.ingress.issuers in project {project}"
        note = f"open issuers: {_listed(list(grants.issuers))}"
        yield _forbidden(owner, what, "spec.loadBalancer.issuer", note, next_)


def _forbidden(owner: PinterestService, what: str, field: str, note: str, next_: str) -> Problem:
    return Problem(FORBIDDEN, what, Where(object=owner.metadata.key, field=field), note, next_)


def _listed(names_: Sequence[str]) -> str:
    return join_first_few(sorted(names_)) if names_ else "none"
