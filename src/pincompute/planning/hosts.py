"""Decides whether a service gets the custom host that it asks for, among all services that ask for the same one.

A host belongs to one namespace. Its own domain decides first, then the lists of hosts that administrators gave to
projects, then age. A project has no right to a custom host that it was not given. Services that had such a host before
there were lists keep it, with a warning, until a project is given the host and uses it: an upgrade must not end an
address that is in use. Whether a service had it is recorded in its status, which only the operator writes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from pincompute.api.hosts import HostRules, Standing, normalize_host
from pincompute.api.project import Project
from pincompute.api.service import PinterestService
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import HOST_KEPT, HOST_NOT_LISTED, HOST_RESERVED, HOST_TAKEN, Reason

_UNWRITTEN = "~"
"""Creation time of a service that does not exist yet; it sorts after every timestamp."""


class HostClaim(NamedTuple):
    """The request of a service for a custom host."""

    host: str
    namespace: str
    name: str
    created: str
    served: bool
    """Its status has the host as its address, so the host leads to it already."""
    path: str = "/"
    path_served: bool = False
    """Its status has the host with this path."""


class HostVerdict(NamedTuple):
    """Whether a service gets its host. Without a problem it does."""

    problem: Problem | None = None
    kept: Problem | None = None
    """The warning of a service that keeps a host which its project was not given."""


HOST_GRANTED = HostVerdict()


def host_claim(service: object, former: object = None) -> HostClaim | None:
    """The claim of a service with a custom host; None for all other resources.

    `former` is the service as it was stored before the change that is decided now: the host may lead to it already.
    """
    if not isinstance(service, PinterestService):
        return None
    balancer, metadata = service.spec.load_balancer, service.metadata
    if not service.spec.has_ingress or not balancer.host:
        return None
    host = normalize_host(balancer.host)
    stored = former if isinstance(former, PinterestService) else service
    address = urlsplit(stored.status.address)
    served = address.hostname == host
    created = stored.metadata.creation_timestamp or _UNWRITTEN
    path, served_path = (each.rstrip("/") or "/" for each in (balancer.path, address.path))
    return HostClaim(host, metadata.namespace, metadata.name, created, served, path, served and path == served_path)


def judge_claim(
    claim: HostClaim, claims: Collection[HostClaim], rules: HostRules, projects: Mapping[str, Project]
) -> HostVerdict:
    """Decide on a claim. `claims` are all claims to the same host, `projects` those of the cluster.

    Without a Project there is no list: in such a namespace a custom host belongs to the oldest claim.
    """
    refusal = _refusal(claim, claims, rules, projects)
    if refusal:
        reason, what = refusal
        return HostVerdict(_problem(reason, what, claim, rules, projects))
    if not _is_unlisted(claim, rules, projects):
        return HOST_GRANTED
    what, note = _not_given_text(claim), "it is still served, until another project is given the host"
    return HostVerdict(kept=Problem(HOST_KEPT, what, _where(claim), note, _give_command(claim, projects)))


def _refusal(
    claim: HostClaim, claims: Collection[HostClaim], rules: HostRules, projects: Mapping[str, Project]
) -> tuple[Reason, str] | None:
    if rules.is_reserved(claim.host):
        return HOST_RESERVED, f"the host {claim.host} is reserved for the platform"
    if _standing(claim, rules, projects) is Standing.NONE:
        return HOST_TAKEN, _domain_text(claim, rules)
    rivals = [each for each in claims if each.namespace != claim.namespace and _is_entitled(each, rules, projects)]
    best = min(rivals, key=lambda each: _rank(each, rules, projects), default=None)
    if best and _rank(best, rules, projects) < _rank(claim, rules, projects):
        return HOST_TAKEN, f"the host {claim.host} belongs to project {best.namespace}"
    if first := _first_of_path(claim, claims):
        return HOST_TAKEN, f"the host {claim.host} with the path {claim.path} leads to service {first.name}"
    if claim.served or not _is_unlisted(claim, rules, projects):
        return None
    return _not_given(claim, rules, projects)


def _not_given(claim: HostClaim, rules: HostRules, projects: Mapping[str, Project]) -> tuple[Reason, str]:
    if rules.is_below_project(claim.host):
        # The same answer as if that project existed, so that it does not reveal which projects exist.
        return HOST_TAKEN, _domain_text(claim, rules)
    holders = sorted(name for name, each in projects.items() if claim.host in each.spec.hosts)
    if holders:
        return HOST_TAKEN, f"the host {claim.host} was given to project {holders[0]}"
    return HOST_NOT_LISTED, _not_given_text(claim)


def _is_unlisted(claim: HostClaim, rules: HostRules, projects: Mapping[str, Project]) -> bool:
    """Whether the project was not given the host. In a namespace without a Project there is no list."""
    return claim.namespace in projects and _standing(claim, rules, projects) is Standing.UNLISTED


def _first_of_path(claim: HostClaim, claims: Collection[HostClaim]) -> HostClaim | None:
    """The service of the same project that has the host with this path, if it is another one."""
    same = (each for each in claims if (each.namespace, each.path) == (claim.namespace, claim.path))
    others = [each for each in same if each.name != claim.name]
    first = min(others, key=_age, default=None)
    return first if first and _age(first) < _age(claim) else None


def _age(claim: HostClaim) -> tuple[bool, str, str]:
    """Sort key: a service that is served before one that is not, and then the oldest."""
    return not claim.path_served, claim.created, claim.name


def _standing(claim: HostClaim, rules: HostRules, projects: Mapping[str, Project]) -> Standing:
    project = projects.get(claim.namespace)
    return rules.standing(claim.host, claim.namespace, project.spec.hosts if project else (), projects.__contains__)


def _is_entitled(claim: HostClaim, rules: HostRules, projects: Mapping[str, Project]) -> bool:
    """Whether a claim can keep others from the host. One without any right must not."""
    standing = _standing(claim, rules, projects)
    has_it = claim.served or claim.namespace not in projects
    return standing < Standing.UNLISTED or (standing is Standing.UNLISTED and has_it)


def _rank(claim: HostClaim, rules: HostRules, projects: Mapping[str, Project]) -> tuple[int, bool, str, str, str]:
    return _standing(claim, rules, projects), not claim.served, claim.created, claim.namespace, claim.name


def _domain_text(claim: HostClaim, rules: HostRules) -> str:
    owner = rules.project_of(claim.host)
    return f"the host {claim.host} belongs to project {owner}, as all below {owner}.{rules.domain}"


def _not_given_text(claim: HostClaim) -> str:
    return f"the host {claim.host} was not given to project {claim.namespace}"


def _problem(reason: Reason, what: str, claim: HostClaim, rules: HostRules, projects: Mapping[str, Project]) -> Problem:
    note = f"without the field, {claim.name} is served at {claim.name}.{claim.namespace}.{rules.domain}"
    next_ = "leave out loadBalancer.host"
    if reason is HOST_NOT_LISTED:
        next_ += f", or ask an administrator for the host: {_give_command(claim, projects)}"
    return Problem(reason, what, _where(claim), note, next_)


def _give_command(claim: HostClaim, projects: Mapping[str, Project]) -> str:
    project = projects.get(claim.namespace)
    hosts = sorted({*(project.spec.hosts if project else ()), claim.host})
    patch = json.dumps({"spec": {"hosts": hosts}}, separators=(",", ":"))
    return f"kubectl patch project {claim.namespace} --type merge -p '{patch}'"


def _where(claim: HostClaim) -> Where:
    return Where(object=f"{claim.namespace}/{claim.name}", field="spec.loadBalancer.host")
