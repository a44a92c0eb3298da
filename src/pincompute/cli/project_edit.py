"""Creates projects and edits their members: each edit is a deploy of the project's document."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable

import click
import msgspec

from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.project import Project, ProjectSpec, Quota, TierQuota
from pincompute.api.resource_state import UNCHANGED, ResourceState
from pincompute.api.structs import Metadata, struct_fields
from pincompute.api.workload import Tier
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NAME_TAKEN, PROJECT_UNKNOWN, USAGE
from pincompute.cli.deploy_project import report_and_follow
from pincompute.cli.follow import FollowTimer
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect
from pincompute.cli.yaml_writer import format_document
from pincompute.planning.membership import Member, add_member, remove_member
from pincompute.planning.workload_document import project_document


def create_project(  # noqa: PLR0913  (the options of a new project)
    target: Target,
    name: str,
    *,
    owner: str,
    contact: str,
    cost_centre: str,
    review: ReviewMode,
    members: Iterable[str],
    tiers: Iterable[str],
    timeout_s: float | None,
) -> None:
    spec = ProjectSpec(
        owner=owner, contact=contact, cost_centre=cost_centre, review=review, quota=parse_quota(tiers)
    )  # fmt: skip
    project = Project(metadata=Metadata(name=name), spec=spec)
    for text in members:
        member, role = parse_member_and_role(text)
        project = add_member(project, member, role)
    asyncio.run(_create(target, project, timeout_s))


def parse_member_and_role(text: str) -> tuple[Member, ProjectRole]:
    member, equals, role = text.rpartition("=")
    if not equals or role not in list(ProjectRole):
        what = f"'{text}' must be MEMBER=ROLE, with one of the roles {', '.join(ProjectRole)}"
        raise Refused(Problem(USAGE, what, next="--member ann=owner"))
    return Member.parse(member), ProjectRole(role)


def parse_quota(tiers: Iterable[str]) -> Quota:
    """Tiers with their limits, such as `on-demand:cpu=100,memory=2Ti`; a tier without limits is unlimited."""
    fields = {each.encode_name for each in struct_fields(TierQuota)}
    quota: dict[str, dict[str, str | int]] = {}
    for text in tiers:
        tier, _, limits = text.partition(":")
        pairs = [each.partition("=") for each in limits.split(",") if each]
        if tier not in list(Tier) or any(name not in fields or not value for name, _, value in pairs):
            what = f"'{text}' must be TIER:RESOURCE=LIMIT,…; tiers: {', '.join(Tier)}; resources: {', '.join(fields)}"
            raise Refused(Problem(USAGE, what, next="--quota on-demand:cpu=100,memory=2Ti"))
        quota[tier] = {name: int(value) if value.isdecimal() else value for name, _, value in pairs}
    try:
        return msgspec.convert(quota, Quota)
    except msgspec.ValidationError as error:
        raise Refused(Problem(USAGE, f"invalid quota: {error}", next="--quota on-demand:cpu=100,pods=2000")) from error


async def _create(target: Target, project: Project, timeout_s: float | None) -> None:
    name = project.metadata.name
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        if await _find(platform, name):
            where = Where(object=f"project {name}")
            raise Refused(Problem(NAME_TAKEN, f"project {name} exists already", where, next=f"pin project {name}"))
        await report_and_follow(platform, await _deploy(platform, project), timer, timeout_s)


async def _find(platform: PlatformClient, name: str) -> Project | None:
    try:
        return await platform.project_document(name)
    except Refused as refused:
        if refused.problems[0].reason is PROJECT_UNKNOWN:
            return None
        raise


def change_member(target: Target, name: str, text: str, role: ProjectRole | None) -> None:
    """Give a member a role; None: remove the member."""
    member = Member.parse(text)
    if role is None:
        asyncio.run(_edit(target, name, lambda project: remove_member(project, member), f"removed {member}"))
    else:
        asyncio.run(_edit(target, name, lambda project: add_member(project, member, role), f"{member} is {role}"))


async def _edit(target: Target, name: str, edit: Callable[[Project], Project], done: str) -> None:
    async with connect(target) as platform:
        before = await platform.project_document(name)
        state = await _deploy(platform, edit(before))
    click.echo(printable(f"project {name}  {UNCHANGED if state.action == UNCHANGED else done}"))


async def _deploy(platform: PlatformClient, project: Project) -> ResourceState:
    """Deploy an edited document, unless the project was changed since it was read."""
    name, generation = project.metadata.name, project.metadata.generation
    return await platform.deploy_project(name, format_document(project_document(project)), "", generation)


def print_document(target: Target, name: str) -> None:
    async def fetch() -> Project:
        async with connect(target) as platform:
            return await platform.project_document(name)

    click.echo(format_document(project_document(asyncio.run(fetch()))), nl=False)


def delete_project(target: Target, name: str, *, yes: bool) -> None:
    asyncio.run(_delete(target, name, confirm=not yes and sys.stdin.isatty()))


async def _delete(target: Target, name: str, *, confirm: bool) -> None:
    async with connect(target) as platform:
        project = await platform.project_document(name)
        if confirm:
            click.echo(
                f"project {name} of {project.spec.owner_text}, with the volumes and secrets left in it", err=True
            )
            click.confirm("Delete it?", abort=True, err=True)
        await platform.delete_project(name)
    click.echo(f"project {name} deleted")
