"""Who goes into a copy: which program they run there, or which of its ports they reach."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.wire import Wire

SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash || exec sh")
"""The better one of those that the image has."""


class Inside(Wire, frozen=True, kw_only=True):
    """What is run, and where."""

    copy: str = ""
    """Any one that runs where empty."""
    container: str = ""
    """Another than the workload's own program."""
    command: Annotated[tuple[str, ...], Meta(min_length=1)] = SHELL
    """As it is, by no shell."""
    terminal: bool = False
    input: bool = False
    """Whether it reads what is typed."""

    def __str__(self) -> str:
        """Without what it is told: that may be nobody's business."""
        return "a shell" if self.command == SHELL else self.command[0]
