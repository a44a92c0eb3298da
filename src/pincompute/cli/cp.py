"""`pin cp`: copy files and folders to and from a replica."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from pincompute.api.debug import DebugRequest
from pincompute.api.exec_request import ExecRequest
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import FILES_NOT_COPIED, USAGE
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, parse_replica_ref, verify_kind

if TYPE_CHECKING:
    from pincompute.kube.exec_stream import ExecStream

_EXAMPLES = "pin cp web:/var/log/app.log . or pin cp app.conf web:/etc/app/"
_TAR_MISSING = "executable file not found"


class RemotePath(NamedTuple):
    """A path in a replica, as NAME[/REPLICA]:PATH."""

    ref: WorkloadRef
    replica: str
    path: str


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("destination", metavar="DESTINATION")
@click.option("--container", "-c", metavar="NAME", default="", help="Another container than the main one.")
@click.option("--ended", is_flag=True, help="From the last container that has ended, before its files are deleted.")
@platform_options
def cp(target: Target, source: str, destination: str, container: str, *, ended: bool) -> None:
    """Copy files and folders to or from a replica.

    One of SOURCE and DESTINATION is NAME:PATH or NAME/REPLICA:PATH, the other a local path, or - for an archive in the
    format of tar on standard input or output. A folder that exists receives the copy under its own name. Files are read
    and written with the rights of the container's user.
    """
    remote_source, remote_destination = _parse_remote(source), _parse_remote(destination)
    if bool(remote_source) == bool(remote_destination):
        what = "one of the two paths must be in a replica, as NAME:PATH, and the other on this machine"
        raise Refused(Problem(USAGE, what, next=_EXAMPLES))
    if remote_source:
        request = _debug_request(remote_source, container, ended=ended)
        asyncio.run(_download(target, remote_source, request, destination))
    elif remote_destination:
        if ended:
            what = "the files of a container that has ended can only be read"
            raise Refused(Problem(USAGE, what, next="the same without --ended"))
        asyncio.run(
            _upload(target, source, remote_destination, _debug_request(remote_destination, container, verb="write"))
        )


def _parse_remote(text: str) -> RemotePath | None:
    """A local path with a colon is written with ./ before it."""
    name, colon, path = text.partition(":")
    if not colon or not name or name.startswith((".", "/", "~")):
        return None
    ref, replica = parse_replica_ref(name)
    return RemotePath(ref, replica, path or "/")


def _debug_request(remote: RemotePath, container: str, *, verb: str = "read", ended: bool = False) -> DebugRequest:
    return DebugRequest(
        verb="write" if verb == "write" else "read", replica=remote.replica, container=container, path=remote.path,
        ended=ended,
    )  # fmt: skip


async def _download(target: Target, remote: RemotePath, request: DebugRequest, destination: str) -> None:
    # Loads aiohttp and tarfile, which the help does not need.
    from pincompute.cli.copy_streams import CopyNotes, download

    notes = CopyNotes()
    async with connect(target) as platform:
        await verify_kind(platform, target.project, remote.ref)
        if await _copied_by_agent(
            platform, target, remote, request, lambda stream: download(stream, destination, notes)
        ):
            return
        path = posixpath.normpath(remote.path)
        command = ("tar", "-C", posixpath.dirname(path) or ".", "-cf", "-", "--", posixpath.basename(path) or ".")
        async with platform.exec(target.project, remote.ref.name, _program(request, command)) as stream:
            await download(stream, destination, notes)


async def _upload(target: Target, source: str, remote: RemotePath, request: DebugRequest) -> None:
    from pincompute.cli.copy_streams import CopyNotes, upload

    notes = CopyNotes()
    async with connect(target) as platform:
        await verify_kind(platform, target.project, remote.ref)
        if await _copied_by_agent(platform, target, remote, request, lambda stream: upload(stream, source, "", notes)):
            return
        folder, name = await _destination(platform, target, source, remote, request)
        command = ("tar", "-C", folder, "-xf", "-")
        async with platform.exec(target.project, remote.ref.name, _program(request, command)) as stream:
            await upload(stream, source, name, notes)


async def _copied_by_agent(
    platform: PlatformClient,
    target: Target,
    remote: RemotePath,
    request: DebugRequest,
    copy: Callable[[ExecStream], Awaitable[None]],
) -> bool:
    """Runs the copy through the agent of the node. False where there is none, so that another way is needed."""
    from pincompute.cli.agent_session import AgentUnavailable

    if target.bypasses_desk:
        return False
    try:
        async with platform.open_session(target.project, remote.ref.name, request) as stream:
            await copy(stream)
    except AgentUnavailable as unavailable:
        if request.ended:
            raise unavailable.refused from unavailable
        unavailable.echo()
        return False
    return True


async def _destination(
    platform: PlatformClient, target: Target, source: str, remote: RemotePath, request: DebugRequest
) -> tuple[str, str]:
    """The folder in which tar unpacks, and the name that the copy gets there."""
    async with platform.exec(target.project, remote.ref.name, _program(request, ("test", "-d", remote.path))) as stream:
        async for _ in stream.output():
            pass
        is_folder = stream.exit_code == 0
    if is_folder or source == "-":
        return remote.path, "" if source == "-" else posixpath.basename(posixpath.normpath(source))
    if remote.path.endswith("/"):
        raise Refused(Problem(FILES_NOT_COPIED, f"{remote.path} is no folder"))
    return posixpath.dirname(remote.path) or "/", posixpath.basename(remote.path)


def _program(request: DebugRequest, command: tuple[str, ...]) -> ExecRequest:
    return ExecRequest(replica=request.replica, container=request.container, command=command, input=True)
