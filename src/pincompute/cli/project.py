"""`pin project`: a project's owner, members, policies, quota and unfinished work; and edits of its document."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.project_view import ProjectSummary, ProjectView, ResourceUsage
from pincompute.base.clock import SystemClock
from pincompute.cli.change import follow_options
from pincompute.cli.completions import complete_project_names
from pincompute.cli.durations import format_age
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BAR_WIDTH = 20
MAX_LISTED = 10
"""Pending submissions and unfinished workloads that are listed; the rest is counted."""
_TITLE_WIDTH = 11
_ROLES = [each.value for each in ProjectRole]
_REVIEW_MODES = [each.value for each in ReviewMode]


class ShowByDefault(click.Group):
    """Takes arguments that are no command of the group as those of `show`: `pin project ads`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self.with_default(args))

    def with_default(self, args: list[str]) -> list[str]:
        is_known = bool(args) and (args[0] in self.commands or args[0] in {"-h", "--help"})
        return args if is_known else ["show", *args]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        return [*super().shell_complete(ctx, incomplete), *complete_project_names(ctx, _NAME, incomplete)]


_NAME = click.Argument(["name"], required=True, shell_complete=complete_project_names)


@click.group(cls=ShowByDefault)
def project() -> None:
    """Show a project, create one, and change its members.

    `pin project NAME` is short for `pin project show NAME`; without a NAME it lists the projects that you may view.
    """


@project.command()
@click.argument("name", required=False, shell_complete=complete_project_names)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def show(target: Target, name: str | None, output: str | None) -> None:
    """Show a project: who may do what, quota, unfinished work.

    Without a NAME, list the projects that you may view.
    """
    result = asyncio.run(_fetch_project(target, name) if name else _fetch_projects(target))
    if output:
        click.echo(as_format(output, result), nl=False)
    elif isinstance(result, ProjectView):
        click.echo(format_project(result, SystemClock().now(), bars=sys.stdout.isatty()), nl=False)
    else:
        click.echo(_format_projects(result))


@project.command()
@click.argument("name")
@click.option("--owner", required=True, help="Owner, such as team-ads.")
@click.option("--contact", default="", help="Contact of the owner, such as #ads-oncall.")
@click.option("--cost-centre", default="", help="Cost centre, such as 4711.")
@click.option("--member", "members", multiple=True, metavar="MEMBER=ROLE", help="Such as ann=owner; repeatable.")
@click.option(
    "--quota",
    "tiers",
    multiple=True,
    default=("on-demand",),
    metavar="TIER[:RESOURCE=LIMIT,...]",
    show_default=True,
    help="Tier that can be used, with its limits, such as on-demand:cpu=100,memory=2Ti; repeatable.",
)
@click.option(
    "--review",
    type=click.Choice(_REVIEW_MODES),
    default=ReviewMode.LANDED.value,
    show_default=True,
    help="landed: only reviewed builds run; open: any file of its deployers.",
)
@follow_options
@platform_options
def create(target: Target, name: str, review: str, **options: Any) -> None:
    """Create a project; for platform administrators.

    A MEMBER is a user, group:NAME or program:NAME. The ROLE is owner, deployer or viewer. More is set in the document:
    pin project document NAME.
    """
    from pincompute.cli.project_edit import create_project

    create_project(target, name, review=ReviewMode(review), **options)


@project.command()
@click.argument("name", shell_complete=complete_project_names)
@click.argument("member")
@click.option("--role", type=click.Choice(_ROLES), required=True, help="Role, in place of any other one.")
@platform_options
def add_member(target: Target, name: str, member: str, role: str) -> None:
    """Give MEMBER a role in project NAME.

    MEMBER is a user, group:NAME or program:NAME. Owners and platform administrators may do it.
    """
    from pincompute.cli.project_edit import change_member

    change_member(target, name, member, ProjectRole(role))


@project.command()
@click.argument("name", shell_complete=complete_project_names)
@click.argument("member")
@platform_options
def remove_member(target: Target, name: str, member: str) -> None:
    """Remove MEMBER from project NAME; the last owner cannot be removed."""
    from pincompute.cli.project_edit import change_member

    change_member(target, name, member, None)


@project.command()
@click.argument("name", shell_complete=complete_project_names)
@platform_options
def document(target: Target, name: str) -> None:
    """Print the document of project NAME, to edit and deploy it."""
    from pincompute.cli.project_edit import print_document

    print_document(target, name)


@project.command()
@click.argument("name", shell_complete=complete_project_names)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@platform_options
def delete(target: Target, name: str, *, yes: bool) -> None:
    """Delete project NAME, if it has no workloads; for platform administrators.

    The volumes and secrets that are left in it are deleted, too. On a terminal it asks for confirmation.
    """
    from pincompute.cli.project_edit import delete_project

    delete_project(target, name, yes=yes)


async def _fetch_project(target: Target, name: str) -> ProjectView:
    async with connect(target) as platform:
        return await platform.get_project(name)


async def _fetch_projects(target: Target) -> list[ProjectSummary]:
    async with connect(target) as platform:
        return await platform.list_projects()


def _format_projects(projects: list[ProjectSummary]) -> str:
    if not projects:
        return "you are in no project        next: ask a project's owner to add you to its members"
    rows = [[each.project, each.owner, each.contact, each.review, each.role or ""] for each in projects]
    return format_table([["PROJECT", "OWNER", "CONTACT", "REVIEW", "ROLE"], *rows], text_columns=5)


def format_project(view: ProjectView, now: datetime, *, bars: bool) -> str:
    lines = [
        _headline(view),
        *([_titled("about", view.description)] if view.description else []),
        *_members(view),
        *_expiry(view),
        *_policies(view),
        *_quota(view, bars=bars),
        *_work(view, now),
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _headline(view: ProjectView) -> str:
    contact = f" ({view.contact})" if view.contact else ""
    owner = f"owner {view.owner}{contact}" if view.owner else "no owner"
    accepts = "accepts any workload" if view.review is ReviewMode.OPEN else "accepts only reviewed and landed builds"
    cost_centre = f", cost centre {view.cost_centre}" if view.cost_centre else ""
    return f"{view.project}  {owner}, {accepts}{cost_centre}"


def _titled(title: str, text: str) -> str:
    return f"  {title:<{_TITLE_WIDTH}}{text}"


def _members(view: ProjectView) -> Iterator[str]:
    rows = [(role.value, names) for role, names in view.members.items()]
    for title, names in [*rows, ("builders", view.builders), ("hosts", view.hosts)]:
        if names:
            yield _titled(title, ", ".join(names))


def _expiry(view: ProjectView) -> Iterator[str]:
    if view.expires:
        stop = "its workloads are stopped" if view.expired else "its workloads are stopped then"
        yield _titled("expired" if view.expired else "expires", f"{view.expires}: {stop}")


def _policies(view: ProjectView) -> Iterator[str]:
    for policy in view.policies:
        platform_wide = " (platform)" if policy.platform_wide else ""
        yield _titled("policy", f"{policy.name}{platform_wide}: {policy.message}")
        for error in policy.errors:
            yield _titled("", f"invalid, rejects every workload: {error}")


def _quota(view: ProjectView, *, bars: bool) -> Iterator[str]:
    rows = [(f"  {tier.tier}", *_usage_row(each, bars=bars)) for tier in view.quota for each in tier.usages]
    rows += [(f"  {tier.tier}", "nothing used") for tier in view.quota if not tier.usages]
    if not rows:
        return
    width = max(map(len, rows))
    yield ""
    padded = [(*row, *[""] * (width - len(row))) for row in rows]
    yield from format_table(padded, text_columns=width).splitlines()


def _usage_row(usage: ResourceUsage, *, bars: bool) -> tuple[str, ...]:
    limited = f"{usage.used} of {usage.limit} used, {usage.remaining} left"
    amounts = limited if usage.limit else f"{usage.used} used, unlimited"
    largest = ", ".join(f"{each.name} {each.usage}" for each in usage.largest_consumers)
    bar = (_bar(usage.used_share),) if bars else ()
    return (usage.resource, *bar, amounts, f"largest: {largest}" if largest else "")


def _bar(share: float | None) -> str:
    """Draw at least one filled cell for any usage at all."""
    if share is None:
        return ""
    full = min(BAR_WIDTH, max(round(share * BAR_WIDTH), share > 0))
    return "█" * full + "░" * (BAR_WIDTH - full)


def _work(view: ProjectView, now: datetime) -> Iterator[str]:
    counts = [f"{count} {kind.removeprefix('Pinterest')}" for kind, count in view.workload_counts.items()]
    yield ""
    yield _titled("workloads", ", ".join(counts) or "none")
    for override in view.overrides:
        expired = " (expired)" if override.overdue else ""
        by = f" by {override.by}" if override.by else ""
        yield _titled(
            "override", f"{override.name}  unreviewed until {override.until}{expired}{by}: {override.because}"
        )
    for submission in view.pending_submissions[:MAX_LISTED]:
        error = f": {submission.last_delivery_error}" if submission.last_delivery_error else ""
        age = f"accepted {format_age(submission.accepted_at, now)} ago"
        yield _titled("pending", f"{submission.name}  {submission.verb} by {submission.caller}, {age}{error}")
    if len(view.pending_submissions) > MAX_LISTED:
        yield _titled("pending", f"and {len(view.pending_submissions) - MAX_LISTED} more")
    for workload in view.unfinished[:MAX_LISTED]:
        yield _titled("unfinished", f"{workload.name}  {workload.message or 'not reconciled yet'}  [{workload.reason}]")
    if len(view.unfinished) > MAX_LISTED:
        more = f"and {len(view.unfinished) - MAX_LISTED} more        next: pin get --project {view.project}"
        yield _titled("unfinished", more)
