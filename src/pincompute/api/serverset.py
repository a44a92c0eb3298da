"""Service discovery: the serverset that a workload is registered in, and the serversets that it reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta

from pincompute.api.custom_resource import NAME_PATTERN, FieldError, FieldPath
from pincompute.api.structs import StrictStruct

MAX_NAMES = 32
MAX_NAME_LENGTH = 63
ANY_WORKLOAD = "*"
ENDPOINTS_FOLDER = "/run/endpoints"
"""Folder in every container of a workload with `endpoints`: a file for each serverset, at PROJECT/WORKLOAD."""

_NAME = NAME_PATTERN.strip("^$")
SERVERSET_PATTERN = f"^({_NAME}/)?{_NAME}$"
READER_PATTERN = rf"^{_NAME}/({_NAME}|\*)$"


class ServersetKey(NamedTuple):
    """A serverset: that of one workload, by its project and name."""

    project: str
    workload: str

    def __str__(self) -> str:
        return f"{self.project}/{self.workload}"

    @classmethod
    def parse(cls, text: str, project: str = "") -> ServersetKey | None:
        """Parse PROJECT/WORKLOAD, or WORKLOAD of the given project; None if it is neither."""
        first, slash, second = text.partition("/")
        key = cls(first, second) if slash else cls(project, first)
        return key if all(re.fullmatch(_NAME, each) and len(each) <= MAX_NAME_LENGTH for each in key) else None


class Serverset(StrictStruct, frozen=True):
    """Registration of the ready replicas in ZooKeeper, as the serverset PROJECT/WORKLOAD."""

    readers: Annotated[
        list[Annotated[str, Meta(pattern=READER_PATTERN, max_length=127)]],
        Meta(
            description="Workloads of other projects that may read the addresses, such as [ads/feed], or ads/* for "
            "all of a project; none by default.",
            max_length=MAX_NAMES,
        ),
    ] = []

    def field_errors(self, path: FieldPath) -> Iterator[FieldError]:
        return name_errors(self.readers, (*path, "readers"))


Endpoints = Annotated[
    list[Annotated[str, Meta(pattern=SERVERSET_PATTERN, max_length=127)]],
    Meta(
        description="Serversets to call, such as [search, ads/feed]: their addresses are kept in the files "
        f"{ENDPOINTS_FOLDER}/PROJECT/WORKLOAD; none by default.",
        max_length=MAX_NAMES,
    ),
]


def endpoints_errors(endpoints: Sequence[str]) -> Iterator[FieldError]:
    return name_errors(endpoints, ("endpoints",))


def name_errors(names: Sequence[str], path: FieldPath) -> Iterator[FieldError]:
    """Names that no workload can have, and duplicates."""
    for index, name in enumerate(names):
        if any(len(each) > MAX_NAME_LENGTH for each in name.split("/")):
            yield FieldError((*path, index), f"a name of '{name}' is longer than {MAX_NAME_LENGTH} characters")
        elif name in names[:index]:
            yield FieldError((*path, index), f"duplicate name '{name}'")


def may_read(reader: ServersetKey, target: ServersetKey, readers: Sequence[str]) -> bool:
    """Whether a workload may read the members of a serverset: every one of its project, and those it is opened to."""
    return reader.project == target.project or not {str(reader), f"{reader.project}/{ANY_WORKLOAD}"}.isdisjoint(readers)
