"""Authorization table of the desk: the project role that each permission needs.

Pure. The Kubernetes RBAC rules that members get in their project's namespace follow from the same roles, in
`pincompute.planning.kinds.project`.
"""

from __future__ import annotations

from enum import StrEnum

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.identity import Identity, IdentityType
from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.project import Project, RoleHolders
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import FORBIDDEN, PROJECT_UNKNOWN


class Permission(StrEnum):
    """Permission on a project. The value completes the sentence `ann may not … project ads`."""

    VIEW = "view"
    DEPLOY = "deploy to"
    CHANGE = "change workloads of"
    DELETE = "delete workloads of"
    EXEC = "exec into workloads of"
    BREAK_GLASS = "break glass in"
    MANAGE_SECRETS = "create and rotate secrets of"
    GRANT_SECRETS = "grant and delete secrets of"
    CONFIGURE = "change the settings of"
    """Change the document of a project: its members, owner and cost centre. `project_changes` has the fields."""
    ADMINISTER = "administer"
    """Access to resources outside of projects, such as runtimes, and to views over all projects."""


REQUIRED_ROLE = {
    Permission.VIEW: ProjectRole.VIEWER,
    Permission.DEPLOY: ProjectRole.DEPLOYER,
    Permission.CHANGE: ProjectRole.DEPLOYER,
    Permission.DELETE: ProjectRole.DEPLOYER,
    Permission.EXEC: ProjectRole.DEPLOYER,
    Permission.BREAK_GLASS: ProjectRole.OWNER,
    Permission.MANAGE_SECRETS: ProjectRole.DEPLOYER,
    Permission.GRANT_SECRETS: ProjectRole.OWNER,
    Permission.CONFIGURE: ProjectRole.OWNER,
}
"""The lowest sufficient role. A permission without a row is for platform administrators."""

_ROLES = tuple(ProjectRole)


def highest_role(caller: Identity, project: Project) -> ProjectRole | None:
    """The caller's highest role in the project, or None without a role."""
    members = project.spec.members
    return next((role for role in _ROLES if _holds_role(caller, members.holders_of(role), project.metadata.name)), None)


def authorize(
    caller: Identity, permission: Permission, name: str, project: Project | None, kind: str = ""
) -> Problem | None:
    """The reason for which the caller is rejected, or None.

    A project that the caller may not view is reported in the same words as one that does not exist: otherwise the
    names of all projects could be found by trying.
    """
    if caller.is_admin:
        return None
    role = highest_role(caller, project) if project else None
    if permission is Permission.ADMINISTER and not name:
        return _admin_required(caller, "this needs a platform administrator")
    if project is None or role is None:
        return project_unknown(name)
    if permission is not Permission.VIEW and kind == PinterestDaemon.__name__:
        return _admin_required(
            caller, f"daemons run on every node: only platform administrators manage those of {name}"
        )
    required = _required_role(permission, project)
    if required is None:
        return _admin_required(caller, f"only platform administrators may {permission} a project such as {name}")
    sufficient = _ROLES.index(role) <= _ROLES.index(required)
    return None if sufficient else _role_too_low(caller, permission, project, role, required)


def _required_role(permission: Permission, project: Project) -> ProjectRole | None:
    if permission is Permission.EXEC and project.spec.review is ReviewMode.LANDED:
        # Commands that are typed into a container are not reviewed.
        return ProjectRole.OWNER
    return REQUIRED_ROLE.get(permission)


def project_unknown(name: str) -> Problem:
    """The answer both for a project that does not exist and for one that the caller may not view."""
    what = f"no project '{name}', or no permission to view it"
    return Problem(PROJECT_UNKNOWN, what, next="pin whoami, which lists your projects")


def _holds_role(caller: Identity, holders: RoleHolders | None, project: str) -> bool:
    if holders is None:
        return False
    if caller.type is IdentityType.PROGRAM:
        return caller.name in holders.qualified_programs(project)
    return caller.name in holders.people or not caller.groups.isdisjoint(holders.groups)


def _admin_required(caller: Identity, what: str) -> Problem:
    return Problem(FORBIDDEN, what, note=f"you are {caller}", next="ask the infrastructure team")


def _role_too_low(
    caller: Identity, permission: Permission, project: Project, role: ProjectRole, required: ProjectRole
) -> Problem:
    name, spec = project.metadata.name, project.spec
    what = f"{caller} may not {permission} project {name}: needs role {required}, has role {role}"
    note = "\n".join(
        f"{sufficient}: {', '.join(names)}"
        for sufficient in _ROLES[: _ROLES.index(required) + 1]
        if (names := member_names(spec.members.holders_of(sufficient)))
    )
    return Problem(FORBIDDEN, what, Where(object=name), note, f"ask {spec.owner_text}, the owner of the project")


def member_names(holders: RoleHolders | None) -> list[str]:
    """Names of the holders of a role, with groups and programs marked as such."""
    if holders is None:
        return []
    programs = (f"{IdentityType.PROGRAM} {name}" for name in holders.programs)
    return [*holders.people, *(f"group {name}" for name in holders.groups), *programs]
