"""Debugging off the API server: requests for sessions with the agent of a node, and the desk's answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pincompute.api.exec_request import DEFAULT_SHELL, ExecRequest
from pincompute.api.structs import LenientStruct

DebugVerb = Literal["exec", "processes", "list", "read", "write"]
MAX_PATH_CHARS = 500
"""In percent-encoding, longer paths could exceed the longest request line that servers accept."""

_Name = Annotated[str, Meta(max_length=253, pattern="^[-A-Za-z0-9._]*$")]


class DebugRequest(LenientStruct, frozen=True, kw_only=True):
    """One session with a container: a program, its processes, or files."""

    verb: DebugVerb = "exec"
    replica: _Name = ""
    """Replica; empty for any running one."""
    container: _Name = ""
    """Container name, if not the main container."""
    command: tuple[str, ...] = ()
    """Of `exec`: executed directly, without a shell."""
    terminal: bool = False
    input: bool = False
    """Of `exec`: attach standard input."""
    path: Annotated[str, Meta(max_length=MAX_PATH_CHARS)] = ""
    """Of `list`, `read` and `write`: a file or folder in the container."""
    ended: bool = False
    """Of `list` and `read`: the last container that has ended, instead of a running one."""

    @classmethod
    def of_exec(cls, request: ExecRequest) -> DebugRequest:
        return cls(
            replica=request.replica, container=request.container, command=request.command,
            terminal=request.terminal, input=request.input,
        )  # fmt: skip

    def __str__(self) -> str:
        """What is done, for the audit log. Arguments of a program may be secret."""
        match self.verb:
            case "exec":
                return f"ran {'a shell' if self.command == DEFAULT_SHELL else self.command[0]} in"
            case "processes":
                return "listed the processes of"
            case "list":
                return f"listed {self.path} of"
            case "read":
                return f"copied {self.path} from"
            case "write":
                return f"copied to {self.path} in"


class DebugTicket(LenientStruct, frozen=True, kw_only=True):
    """Where to open a session, and the grant for it. It lives as long as the connection that it came by."""

    url: str
    """Of the node's agent."""
    authority: str
    """CA certificates that verify the agent, in PEM."""
    grant: str
    request: str
    """The authorized request, which the agent must get unchanged."""
    node: str
    replica: str
    """Name of the pod."""
    container: str


class ProcessDetail(LenientStruct, frozen=True, omit_defaults=False):
    """One process of a container."""

    pid: int
    """As the container sees it."""
    user: int
    state: str
    """One letter of proc(5), such as R or S."""
    cpu_seconds: float
    memory_bytes: int
    age_seconds: int
    command: str


class SocketDetail(LenientStruct, frozen=True, omit_defaults=False):
    """One socket of a replica. Its containers share the network, but not the processes."""

    protocol: str
    state: str
    local: str
    remote: str
    pid: int = 0
    """Process of the container that has it open; 0 for another container's."""


class ProcessReport(LenientStruct, frozen=True, omit_defaults=False):
    """Processes and sockets of one replica; the longest lists are cut."""

    processes: list[ProcessDetail]
    process_count: int
    sockets: list[SocketDetail]
    socket_count: int


class FileDetail(LenientStruct, frozen=True, omit_defaults=False):
    """One entry of a folder in a container."""

    name: str
    type: str
    """file, folder, link, or other."""
    mode: int
    size: int
    modified: int
    """Seconds since 1970."""
    target: str = ""
    """Of a link."""
