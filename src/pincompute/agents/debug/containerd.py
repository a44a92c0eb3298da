"""Client of containerd's API on its socket: the containers of pods, their tasks, programs in them, and their files.

This is the API below CRI. CRI cannot end a program that it has started, knows no half-closed input over websockets, and
hides the file systems of ended containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from pincompute.agents.debug.protobuf import Field, Fields, Message, decode, encode
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CONTAINER_GONE, DEBUG_AGENT_UNAVAILABLE, PROGRAM_UNKNOWN, Reason

NAMESPACE = "k8s.io"
"""containerd's own namespace of the containers of Kubernetes."""
TIMEOUT_S = 30.0
POD_UID_LABEL, CONTAINER_LABEL = "io.kubernetes.pod.uid", "io.kubernetes.container.name"
_RUNNING = 2
_PROCESS_TYPE = "types.containerd.io/opencontainers/runtime-spec/1/Process"

_TIMESTAMP: Fields = {1: Field("seconds", int), 2: Field("nanoseconds", int)}
_ANY: Fields = {1: Field("type_url", str), 2: Field("value", bytes)}
_CONTAINER: Fields = {
    1: Field("id", str), 5: Field("spec", _ANY), 6: Field("snapshotter", str), 7: Field("snapshot_key", str),
    8: Field("created_at", _TIMESTAMP),
}  # fmt: skip
_PROCESS: Fields = {3: Field("pid", int), 4: Field("status", int)}
_MOUNT: Fields = {1: Field("type", str), 2: Field("source", str), 4: Field("options", str, repeated=True)}
_EXEC_ID: Fields = {1: Field("container_id", str), 2: Field("exec_id", str)}


class _Method(NamedTuple):
    path: str
    request: Fields
    reply: Fields = MappingProxyType({})


_TASKS = "/containerd.services.tasks.v1.Tasks"
_LIST_CONTAINERS = _Method(
    "/containerd.services.containers.v1.Containers/List",
    {1: Field("filters", str, repeated=True)},
    {1: Field("containers", _CONTAINER, repeated=True)},
)
_GET_TASK = _Method(f"{_TASKS}/Get", _EXEC_ID, {1: Field("process", _PROCESS)})
_LIST_PIDS = _Method(
    f"{_TASKS}/ListPids",
    {1: Field("container_id", str)},
    {1: Field("processes", {1: Field("pid", int), 2: Field("info", _ANY)}, repeated=True)},
)
_PROCESS_DETAILS: Fields = {1: Field("exec_id", str)}
"""Of programs that were started in a container, and not of those that they have started."""
_EXEC = _Method(
    f"{_TASKS}/Exec",
    {
        1: Field("container_id", str), 2: Field("stdin", str), 3: Field("stdout", str), 4: Field("stderr", str),
        5: Field("terminal", int), 6: Field("spec", _ANY), 7: Field("exec_id", str),
    },
)  # fmt: skip
_START = _Method(f"{_TASKS}/Start", _EXEC_ID)
_WAIT = _Method(f"{_TASKS}/Wait", _EXEC_ID, {1: Field("exit_status", int)})
_RESIZE = _Method(f"{_TASKS}/ResizePty", {**_EXEC_ID, 3: Field("width", int), 4: Field("height", int)})
_CLOSE_IO = _Method(f"{_TASKS}/CloseIO", {**_EXEC_ID, 3: Field("stdin", int)})
_KILL = _Method(f"{_TASKS}/Kill", {**_EXEC_ID, 3: Field("signal", int)})
_DELETE_PROCESS = _Method(f"{_TASKS}/DeleteProcess", _EXEC_ID)
_MOUNTS = _Method(
    "/containerd.services.snapshots.v1.Snapshots/Mounts",
    {1: Field("snapshotter", str), 2: Field("key", str)},
    {1: Field("mounts", _MOUNT, repeated=True)},
)


class _BytesCodec(CodecBase):
    """Leaves messages as bytes, which this module encodes and decodes."""

    __content_subtype__ = "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class Container(NamedTuple):
    """A container as containerd records it, also after its end."""

    id: str
    spec: Mapping[str, Any]
    """Its OCI specification."""
    snapshotter: str
    snapshot_key: str
    pid: int = 0
    """Its first process on the node; 0 if it does not run."""

    @property
    def process(self) -> dict[str, Any]:
        """The process of the OCI specification: user, environment and capabilities."""
        process: dict[str, Any] = self.spec.get("process") or {}
        return process


class Mount(NamedTuple):
    type: str
    source: str
    options: tuple[str, ...]


class ExecId(NamedTuple):
    """A program that was started in a container."""

    container: str
    exec: str

    def message(self) -> Message:
        return {"container_id": self.container, "exec_id": self.exec}


class ProgramStreams(NamedTuple):
    """Named pipes of a program; those that are empty are not connected."""

    stdin: str
    stdout: str
    stderr: str


class Containerd:
    """One connection, which is opened again when it is lost."""

    def __init__(self, socket: Path) -> None:
        self._channel = Channel(path=str(socket), codec=_BytesCodec())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._channel.close()

    async def find_running(self, uid: str, name: str) -> Container:
        """The running container of a pod."""
        for container in await self._list(uid, name):
            task = await self._task_of(container.id)
            if task.get("status") == _RUNNING and task.get("pid"):
                return container._replace(pid=task["pid"])
        raise Refused(Problem(CONTAINER_GONE, f"container '{name}' of the replica does not run on this node"))

    async def find_ended(self, uid: str, name: str) -> Container:
        """The last container of a pod that has ended and is not deleted yet."""
        for container in await self._list(uid, name):
            if (await self._task_of(container.id)).get("status") != _RUNNING:
                return container
        what = f"no container '{name}' of the replica has ended, or its files are deleted already"
        raise Refused(Problem(CONTAINER_GONE, what))

    async def list_pids(self, container: str) -> list[int]:
        """All processes of a container, as the node numbers them."""
        reply = await self._call(_LIST_PIDS, {"container_id": container})
        return [each["pid"] for each in reply["processes"]]

    async def list_programs(self, container: str) -> list[ExecId]:
        """The programs that were started in a container, beside its own."""
        reply = await self._call(_LIST_PIDS, {"container_id": container})
        details = (decode(_PROCESS_DETAILS, each["info"].get("value", b"")) for each in reply["processes"])
        return [ExecId(container, each["exec_id"]) for each in details if each["exec_id"]]

    async def list_ids(self) -> list[str]:
        """All containers."""
        return [each["id"] for each in (await self._call(_LIST_CONTAINERS, {}))["containers"]]

    async def exec(self, program: ExecId, process: Mapping[str, Any], streams: ProgramStreams) -> None:
        """Starts a program with this process specification."""
        specification = {"type_url": _PROCESS_TYPE, "value": msgspec.json.encode(process)}
        message = {
            **program.message(),
            **streams._asdict(),
            "terminal": int(process["terminal"]),
            "spec": specification,
        }
        await self._call(_EXEC, message)
        await self._call(_START, program.message(), failure=PROGRAM_UNKNOWN)

    async def wait_exit(self, program: ExecId) -> int:
        """The exit code, when the program has ended."""
        reply = await self._call(_WAIT, program.message(), timeout_s=None)
        return int(reply["exit_status"])

    async def resize_pty(self, program: ExecId, columns: int, rows: int) -> None:
        await self._call(_RESIZE, {**program.message(), "width": columns, "height": rows})

    async def close_stdin(self, program: ExecId) -> None:
        await self._call(_CLOSE_IO, {**program.message(), "stdin": 1})

    async def send_signal(self, program: ExecId, signal: int) -> None:
        await self._call(_KILL, {**program.message(), "signal": signal})

    async def delete(self, program: ExecId) -> None:
        """Removes an ended program."""
        await self._call(_DELETE_PROCESS, program.message())

    async def mounts_of(self, container: Container) -> list[Mount]:
        """The mounts that make up the root of a container."""
        reply = await self._call(_MOUNTS, {"snapshotter": container.snapshotter, "key": container.snapshot_key})
        return [Mount(each["type"], each["source"], tuple(each["options"])) for each in reply["mounts"]]

    async def _list(self, uid: str, name: str) -> list[Container]:
        """Records of a container of a pod, one for each of its last runs, newest first."""
        filter_ = f'labels."{POD_UID_LABEL}"=="{uid}",labels."{CONTAINER_LABEL}"=="{name}"'
        found: list[Message] = (await self._call(_LIST_CONTAINERS, {"filters": [filter_]}))["containers"]
        found.sort(key=_creation_time)
        return [_container(each) for each in reversed(found)]

    async def _task_of(self, container: str) -> Message:
        """The task of a container; empty if it has none any more."""
        try:
            process: Message = (await self._call(_GET_TASK, {"container_id": container}))["process"]
        except Refused as refused:
            if refused.problems[0].reason is CONTAINER_GONE:
                return {}
            raise
        return process

    async def _call(
        self,
        method: _Method,
        message: Mapping[str, Any],
        *,
        timeout_s: float | None = TIMEOUT_S,
        failure: Reason = DEBUG_AGENT_UNAVAILABLE,
    ) -> Message:
        unary = UnaryUnaryMethod[bytes, bytes](self._channel, method.path, bytes, bytes)
        metadata = {"containerd-namespace": NAMESPACE}
        try:
            reply = await unary(encode(method.request, message), timeout=timeout_s, metadata=metadata)
        except GRPCError as error:
            raise _grpc_refusal(error, failure) from error
        except (OSError, TimeoutError, StreamTerminatedError, ProtocolError) as error:
            what = f"the container runtime does not answer: {error or type(error).__name__}"
            raise Refused(Problem(DEBUG_AGENT_UNAVAILABLE, what, next="pin status")) from error
        return decode(method.reply, reply)


def _grpc_refusal(error: GRPCError, failure: Reason) -> Refused:
    message = error.message or error.status.name
    if error.status is Status.NOT_FOUND:
        return Refused(Problem(CONTAINER_GONE, "the container, or the program in it, has ended", note=message))
    return Refused(Problem(failure, f"the container runtime refuses: {message}"))


def _creation_time(container: Message) -> tuple[int, int]:
    created: Message = container["created_at"]
    return created.get("seconds", 0), created.get("nanoseconds", 0)


def _container(message: Message) -> Container:
    specification = message["spec"].get("value", b"")
    return Container(
        message["id"], msgspec.json.decode(specification) if specification else {}, message["snapshotter"],
        message["snapshot_key"],
    )  # fmt: skip
