"""Which platform a command speaks to: the options that say so, and the way there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from pincompute.base.settings import setting
from pincompute.cli.port import Port

F = TypeVar("F", bound=Callable[..., Any])


class Target(NamedTuple):
    """Which platform a command speaks to, and of which project."""

    name: str
    project: str
    kubeconfig: str
    context: str

    @classmethod
    def of(cls, platform: str | None, project: str | None, kubeconfig: str | None, context: str | None) -> Target:
        """What was typed, or else is set."""
        return cls(setting("name", platform), setting("project", project), kubeconfig or "", context or "")

    @property
    def direct(self) -> bool:
        """Straight to a cluster, without a desk."""
        return bool(self.kubeconfig or self.context)


def to_platform(command: F) -> F:
    """The options that say where; the command gets them as one value, `target`."""
    options = (
        click.option("--name", "platform", help="The platform, as in `pin up --name`."),
        click.option("--project", "-p", help="The project; yours by default."),
        click.option("--kubeconfig", default="", help="Speak to this cluster, without a desk."),
        click.option("--context", default="", help="The context of the kubeconfig."),
    )

    @wraps(command)
    def gathered(platform: str | None, project: str | None, kubeconfig: str, context: str, **others: Any) -> Any:
        return command(target=Target.of(platform, project, kubeconfig, context), **others)

    for option in options:
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Port]:
    # Only the way that is taken is loaded: a person waits for it.
    if target.direct:
        from pincompute.cli.cluster import cluster_port
        from pincompute.kube.kubeconfig import usual

        async with cluster_port(target.kubeconfig or usual(), target.context) as port:
            yield port
    else:
        from pincompute.base.context import read_context
        from pincompute.cli.desk import desk_port
        from pincompute.cli.signed_in import signed_in

        state = Path(setting("state"))
        context = await signed_in(state, read_context(state, target.name))
        async with desk_port(context) as port:
            yield port
