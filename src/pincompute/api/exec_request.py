"""Request to run a command in a container or to forward a port to it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.structs import LenientStruct

DEFAULT_SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash || exec sh")
"""Bash if the image has it, otherwise sh."""


class ExecRequest(LenientStruct, frozen=True, kw_only=True):
    """A command and the container to run it in."""

    replica: str = ""
    """Replica to enter; empty for any running one."""
    container: str = ""
    """Container name, if not the main container."""
    command: Annotated[tuple[str, ...], Meta(min_length=1)] = DEFAULT_SHELL
    """Executed directly, without a shell."""
    terminal: bool = False
    input: bool = False
    """Attach standard input."""

    def __str__(self) -> str:
        """Only the program's name, without arguments, which may be secret and must not reach a log."""
        return "a shell" if self.command == DEFAULT_SHELL else self.command[0]
