"""Decides which version of a secret a workload gets, or why it gets none."""

from __future__ import annotations

from collections.abc import Mapping

from pincompute.agents.secrets import rows
from pincompute.agents.secrets.projects import KnownProject
from pincompute.base.database import Connection
from pincompute.base.problem import Problem
from pincompute.base.reasons import SECRET_NOT_GRANTED, SECRET_UNKNOWN
from pincompute.objects.secret_reference import SecretReference


def resolve_reference(
    connection: Connection,
    projects: Mapping[str, KnownProject],
    project: str,
    workload: str,
    reference: SecretReference,
) -> int | Problem:
    """The version that the workload of the project gets.

    A secret of another project that does not exist gets the same answer as one that is not granted: otherwise names
    of other projects could be found by trying.
    """
    known, is_own = projects.get(reference.project), reference.project == project
    secret = rows.find_secret(connection, reference.project, known.uid, reference.name) if known else None
    if secret is None and is_own:
        return _unknown(project, reference)
    grantees = [f"project:{project}", f"workload:{project}/{workload}"]
    if secret is None or not rows.is_granted(connection, secret, grantees):
        return _not_granted(project, workload, reference)
    if version := rows.served_version(connection, secret, reference.version):
        return version
    return _no_version(reference, project)


def _unknown(project: str, reference: SecretReference) -> Problem:
    what = f"no secret '{reference.name}' in project {project}"
    return Problem(SECRET_UNKNOWN, what, next=f"pin secret create {reference.name} --project {project}")


def _not_granted(project: str, workload: str, reference: SecretReference) -> Problem:
    name, owner = reference.name, reference.project
    missing = "" if owner == project else f"no secret '{name}' in project {owner}, or "
    what = f"{missing}secret {name} is not granted to {project}/{workload}"
    next_ = f"pin secret grant {name} workload:{project}/{workload} --project {owner}"
    return Problem(SECRET_NOT_GRANTED, what, next=next_ if owner == project else f"ask an owner of {owner}: {next_}")


def _no_version(reference: SecretReference, project: str) -> Problem:
    wanted = f"no active version {reference.version}" if reference.version else "no primary version"
    what = f"secret {reference.relative_to(project)} has {wanted}"
    next_ = f"pin secret show {reference.name} --project {reference.project}"
    return Problem(SECRET_UNKNOWN, what, next=next_)
