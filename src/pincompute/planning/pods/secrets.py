"""What the pod template of a workload with secrets has, besides the runtime part that delivers them."""

from __future__ import annotations

from collections.abc import Collection

from pincompute.api.names import SECRETS_ANNOTATION, SECRETS_GROUP_ANNOTATION
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DOCUMENT_INVALID, SECRETS_NOT_SERVED
from pincompute.objects.content import Object
from pincompute.objects.secret_reference import parse_reference

SECRETS_PART = "secrets"
SECRETS_GROUP_ID = 65_531
"""Supplementary group of all containers of a pod with secrets, so that a program can read them as any user."""


def secrets_annotations(owner: Workload) -> dict[str, str]:
    """Tell the part which secrets to keep. A change of the list replaces the pods; a rotation does not."""
    if not owner.spec.secrets:
        return {}
    names = " ".join(owner.spec.secrets)
    return {SECRETS_ANNOTATION: names, SECRETS_GROUP_ANNOTATION: str(SECRETS_GROUP_ID)}


def with_secrets_group(owner: Workload, security_context: Object) -> Object:
    """The security context of the pod with the group that may read the files."""
    if not owner.spec.secrets:
        return security_context
    groups = [each for each in security_context.get("supplementalGroups", ()) if each != SECRETS_GROUP_ID]
    return {**security_context, "supplementalGroups": [*groups, SECRETS_GROUP_ID]}


def secrets_problem(owner: Workload, runtime: int, parts: Collection[PinterestSidecar]) -> Problem | None:
    """Why a workload cannot have secrets: two are one file, or no part of its runtime delivers them."""
    if duplicate := _duplicate(owner):
        what = f"'{duplicate}' names a secret a second time, which would be the same file"
        where = Where(object=owner.metadata.key, field="spec.secrets")
        return Problem(DOCUMENT_INVALID, what, where, next="remove one of the two")
    if not owner.spec.secrets or any(SECRETS_PART in each.provided_names for each in parts):
        return None
    held = f"runtime {runtime} has no part '{SECRETS_PART}'" if runtime else "there is no runtime, which delivers them"
    return Problem(
        SECRETS_NOT_SERVED,
        f"{owner.metadata.name} names secrets, and {held}",
        Where(object=owner.metadata.key, field="spec.secrets"),
        next="infrastructure team: pin up --runtime, or roll out a runtime with the part secrets",
    )


def _duplicate(owner: Workload) -> str:
    """The second name of one secret: `db` and `ads/db` are the same in project ads."""
    project, files = owner.metadata.namespace, set[str]()
    for text in owner.spec.secrets:
        file = parse_reference(text, project).file_name(project)
        if file in files:
            return text
        files.add(file)
    return ""
