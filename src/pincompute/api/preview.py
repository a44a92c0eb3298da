"""What a document would do, before it does it: what the desk answers and the hand shows."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pincompute.api.provenance import LinkAccount
from pincompute.api.wire import Wire
from pincompute.objects.content import Object


class Verb(StrEnum):
    MAKE = "make"
    CHANGE = "change"
    REPLACE = "replace"
    REMOVE = "remove"


class FieldChange(Wire, frozen=True, omit_defaults=False):
    path: str
    before: str = ""
    after: str = ""


class NativeChange(Wire, frozen=True, omit_defaults=False):
    verb: Verb
    native: str
    """`Deployment/hello`."""
    fields: list[FieldChange] = []


class Preview(Wire, frozen=True, omit_defaults=False):
    kind: str
    project: str
    name: str
    address: str = ""
    changes: list[NativeChange] = []
    unchanged: int = 0
    restarts: bool = False
    """Its copies are made anew, one after the other."""
    fits: list[str] = []
    """How many more copies the nodes have room for; nothing where nobody may look at them."""
    room: list[str] = []
    """What it takes of its project's quota, and what is left of that."""
    natives: list[Object] = []
    """Everything that is wanted, whole."""
    refused: list[dict[str, Any]] = []
    """Why it would not be taken as things are."""

    @property
    def label(self) -> str:
        """`PinterestService me/hello`; what belongs to no project is named alone."""
        return f"{self.kind} {self.project}/{self.name}" if self.project else f"{self.kind} {self.name}"


class BuildPreview(Wire, frozen=True, omit_defaults=False):
    """What deploying a published version would do, and whether it may."""

    version: str
    preview: Preview
    links: list[LinkAccount] = []
    """Of the chain from the commit to the build; none where nobody asks for it."""
    refused: list[dict[str, Any]] = []
    """Why it would not be taken as things are."""
