"""The options that select a platform and a project, and the connection to that platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from pincompute.base.problem import Problem, Refused
from pincompute.base.settings import setting_value
from pincompute.cli.platform_client import DELIVERY_WAIT_S, PlatformClient

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class Target(NamedTuple):
    """The platform and project of a command."""

    name: str
    project: str
    kubeconfig: str
    context: str
    delivery_timeout_s: float = DELIVERY_WAIT_S

    @classmethod
    def of(cls, platform: str | None, project: str | None, kubeconfig: str | None, context: str | None) -> Target:
        """Fill options that are not given from the settings."""
        return cls(setting_value("name", platform), setting_value("project", project), kubeconfig or "", context or "")

    def within(self, timeout_s: float | None) -> Target:
        """The same target for a command that takes so long at most; None: as without such an option."""
        return self if timeout_s is None else self._replace(delivery_timeout_s=timeout_s)

    @property
    def bypasses_desk(self) -> bool:
        """Whether the command goes straight to a cluster."""
        return bool(self.kubeconfig or self.context)


def platform_options(command: CommandT) -> CommandT:
    """Add the options of a platform; the command gets them together as `target`."""
    options = (
        click.option("--name", "platform", help="Platform, as in `pin up --name`."),
        click.option("--project", "-p", "-n", help="Project; your default project if not given."),
        click.option("--kubeconfig", default="", help="Use the cluster of this kubeconfig, without a desk."),
        click.option("--context", default="", help="Context of the kubeconfig."),
    )

    @wraps(command)
    def with_target(platform: str | None, project: str | None, kubeconfig: str, context: str, **others: Any) -> Any:
        try:
            return command(target=Target.of(platform, project, kubeconfig, context), **others)
        except Refused as refused:
            raise Refused(*(_name_platform(each, platform) for each in refused.problems)) from refused

    for option in options:
        with_target = option(with_target)
    return with_target  # type: ignore[return-value]


def _name_platform(problem: Problem, platform: str | None) -> Problem:
    """`pin status` as a hint must be for the platform of this command."""
    if platform and problem.next == "pin status":
        return problem._replace(next=f"pin status --name {platform}")
    return problem


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[PlatformClient]:
    """Open a client of the desk or of the cluster, and load only the modules of that one."""
    if target.bypasses_desk:
        from pincompute.cli.cluster_client import open_cluster_client
        from pincompute.kube.kubeconfig import default_kubeconfig

        async with open_cluster_client(target.kubeconfig or default_kubeconfig(), target.context) as platform:
            yield platform
    else:
        from pincompute.base.platform_context import read_context
        from pincompute.cli.desk_client import open_desk_client
        from pincompute.cli.session_token import with_current_token

        state = Path(setting_value("state"))
        context = await with_current_token(state, read_context(state, target.name))
        async with open_desk_client(context, target.delivery_timeout_s) as platform:
            yield platform
