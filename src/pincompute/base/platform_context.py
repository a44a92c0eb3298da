"""The context of a platform: its addresses and credentials, written by `pin up` or `pin login` and read by commands."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PLATFORM_UNKNOWN
from pincompute.base.secure_files import write_private_file


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A platform as the CLI needs to know it."""

    name: str
    desk: str
    """Address of the desk, such as `https://127.0.0.1:41234`."""
    token: str
    """Local token of the desk. The file that holds it is readable by its owner only."""
    kubeconfig: str
    images: str = ""
    """Address of the platform's image registry, as `host:port`; empty if it has none."""
    certificates: str = ""
    """Folder with `ca.crt`, which verifies the registry."""
    registry_key: str = ""
    """File of the key that signs tokens of the registry; only the platform's owner can read it."""
    authority: str = ""
    """File with the CA certificates that verify the desk; the system's by default."""
    identity: str = ""
    """File with the client certificate for the desk, renewed by another program; empty if a token is used."""
    key: str = ""
    """File with the certificate's key, if it is not in the same file."""
    artifacts: str = ""
    """Folder or address of the artifact store."""
    web_authority: str = ""
    """File with the CA certificate of the services' hosts; empty if the platform has no ingress of its own."""
    https_domain: str = ""
    """Domain and port for HTTPS: services answer at `https://NAME.PROJECT.<this>`."""


def _file(state: Path, name: str) -> Path:
    return state / name / "context.json"


def write_context(state: Path, context: Context) -> None:
    write_private_file(_file(state, context.name), msgspec.json.encode(context))


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
                f"no platform '{name}' on this machine",
                note=f"platforms: {', '.join(known)}" if known else "",
                next=f"pin up --name {name}" if name != "main" else "pin up",
            )
        ) from error
