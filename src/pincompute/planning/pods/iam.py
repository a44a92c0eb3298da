"""The token with which a workload assumes its IAM role in a cloud, if its project has opened the role.

A cloud trusts the issuer of the cluster's tokens, and decides by their subject, `system:serviceaccount:PROJECT:NAME`,
and their audience. The kubelet renews the file before the token expires.
"""

from __future__ import annotations

from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import FORBIDDEN
from pincompute.objects.content import Object

MOUNT_PATH = "/run/iam"
LIFETIME_S = 3600
_FILE = "token"
_VOLUME = "iam-token"


def iam_audience(owner: Workload, project: Project | None) -> str:
    """The audience of the workload's tokens; empty without a role that its project has opened."""
    return project.spec.iam_roles.get(owner.spec.iam_role, "") if project else ""


def iam_problem(owner: Workload, project: Project | None) -> Problem | None:
    """Why a workload cannot have its role: roles are closed, unless the project lists them."""
    role, name = owner.spec.iam_role, owner.metadata.namespace
    if not role or iam_audience(owner, project):
        return None
    what = f"iamRole {role} is not open to project {name}"
    note = f"open roles: {', '.join(sorted(project.spec.iam_roles)) if project and project.spec.iam_roles else 'none'}"
    next_ = f"remove iamRole, or ask the infrastructure team for spec.iamRoles in project {name}"
    return Problem(FORBIDDEN, what, Where(object=owner.metadata.key, field="spec.iamRole"), note, next_)


def iam_volumes(audience: str) -> list[Object]:
    if not audience:
        return []
    token = {"audience": audience, "expirationSeconds": LIFETIME_S, "path": _FILE}
    return [{"name": _VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}]


def iam_mounts(audience: str) -> list[Object]:
    return [{"name": _VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}] if audience else []


def iam_variables(owner: Workload, audience: str) -> list[Object]:
    """Of the main container, which has the file."""
    if not audience:
        return []
    return [
        {"name": "PIN_IAM_ROLE", "value": owner.spec.iam_role},
        {"name": "PIN_IAM_TOKEN_FILE", "value": f"{MOUNT_PATH}/{_FILE}"},
    ]
