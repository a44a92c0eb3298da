"""The hand's one port to a platform, with two adapters: the desk, and a kubeconfig where that is all there is."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import click

from pincompute.api.summary import Summary
from pincompute.base.settings import setting

F = TypeVar("F", bound=Callable[..., Any])


class Port(Protocol):
    """What can be asked of a platform."""

    async def submit(self, text: str, file: str, project: str) -> Summary: ...

    async def all(self, project: str) -> list[Summary]: ...

    def follow(self, project: str, name: str) -> AsyncGenerator[Summary]: ...

    def logs(self, project: str, name: str, *, tail: int, follow: bool) -> AsyncGenerator[str]: ...

    async def delete(self, project: str, name: str) -> None: ...

    async def images(self) -> list[str]:
        """Those that the platform keeps itself."""
        ...


class Where(NamedTuple):
    """Which platform a command speaks to, and of which project."""

    name: str
    project: str
    kubeconfig: str
    context: str

    @property
    def direct(self) -> bool:
        """Straight to a cluster, without a desk."""
        return bool(self.kubeconfig or self.context)


def to_platform(command: F) -> F:
    """The options that say where; the command gets them as one value, `where`."""
    options = (
        click.option("--name", "platform", help="The platform, as in `pin up --name`."),
        click.option("--project", "-p", help="The project; yours by default."),
        click.option("--kubeconfig", default="", help="Speak to this cluster, without a desk."),
        click.option("--context", default="", help="The context of the kubeconfig."),
    )

    def gathered(platform: str | None, project: str | None, kubeconfig: str, context: str, **others: Any) -> Any:
        where = Where(setting("name", platform), setting("project", project), kubeconfig, context)
        return command(where=where, **others)

    gathered.__doc__ = command.__doc__
    gathered.__name__ = command.__name__
    for option in options:
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]


@asynccontextmanager
async def connect(where: Where) -> AsyncIterator[Port]:
    if where.direct:
        from pincompute.cli.cluster import cluster_port

        kubeconfig = where.kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
        async with cluster_port(kubeconfig, where.context) as port:
            yield port
    else:
        from pincompute.base.context import read_context
        from pincompute.cli.desk import desk_port

        context = read_context(Path(setting("state")), where.name)
        async with desk_port(context) as port:
            yield port
