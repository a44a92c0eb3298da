"""Where a platform is found: written by whoever starts one, read by whoever speaks to it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pincompute.base.private import write_private
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PLATFORM_UNKNOWN


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """One platform, as the hand needs to know it."""

    name: str
    desk: str
    """The address of the submission service, such as `http://127.0.0.1:41234`."""
    token: str
    """What the desk asks for; the file that holds it is its owner's alone."""
    kubeconfig: str
    images: str = ""
    """The platform's own registry, as `address:port`; empty where it has none."""
    certificates: str = ""
    """The folder with `ca.crt`, by which the registry is known."""
    authority: str = ""
    """The file with whoever vouches for the desk; the system's by default."""
    identity: str = ""
    """The file with the certificate that is shown to the desk, which others renew; none where a token is shown."""
    key: str = ""
    """The file with its key, where that is another one."""
    artifacts: str = ""
    """Where builds are published: a folder, or an address."""


def _file(state: Path, name: str) -> Path:
    return state / name / "context.json"


def write_context(state: Path, context: Context) -> None:
    write_private(_file(state, context.name), msgspec.json.encode(context))


def find_context(state: Path, name: str) -> Context | None:
    try:
        return read_context(state, name)
    except Refused:
        return None


def read_context(state: Path, name: str) -> Context:
    try:
        return msgspec.json.decode(_file(state, name).read_bytes(), type=Context)
    except (FileNotFoundError, UnicodeDecodeError, msgspec.DecodeError) as error:
        known = sorted(file.parent.name for file in state.glob("*/context.json"))
        raise Refused(
            Problem(
                PLATFORM_UNKNOWN,
                f"there is no platform '{name}' on this machine",
                note=f"there are: {', '.join(known)}" if known else "",
                next=f"pin up --name {name}" if name != "main" else "pin up",
            )
        ) from error
