"""Configuration bundles: how a workload refers to one, and what the desk and the config store say about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import FieldError
from pincompute.api.structs import LenientStruct, StrictStruct
from pincompute.objects.config_bundle import MAX_FILE_BYTES, MAX_FILES, MAX_PATH_CHARS, BundleFile

MAX_BUNDLES = 8
"""Bundles of one workload."""
MAX_SHARES = 100
"""Projects that may read a bundle of another one."""
NAME_PATTERN = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
"""Of a bundle, which is a folder in its pods."""
LIVE = "live"
_PROJECT = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_REFERENCE = rf"({_PROJECT}/)?[a-z]([-a-z0-9]{{0,61}}[a-z0-9])?(@([1-9][0-9]{{0,5}}|{LIVE}))?"
REFERENCE_PATTERN = rf"^{_REFERENCE}$"
MAX_REFERENCE_CHARS = 134
MAX_VERSION = 999_999


class BundleReference(NamedTuple):
    """A bundle as a workload names it: `flags`, `flags@3`, `flags@live` or `search/synonyms@7`."""

    project: str
    name: str
    version: int = 0
    """0 for the current version: at each deploy, or continuously if it is live."""
    live: bool = False

    @classmethod
    def parse(cls, text: str, project: str) -> BundleReference:
        """Parse the entry of a workload of this project. It must match the pattern."""
        path, _, version = text.partition("@")
        owner, _, name = path.rpartition("/")
        live = version == LIVE
        return cls(owner or project, name, 0 if live or not version else int(version), live)

    @property
    def bundle(self) -> str:
        """Project and name."""
        return f"{self.project}/{self.name}"


class ConfigPin(StrictStruct, frozen=True):
    """The version of a bundle that a workload has, as the desk found it at the deploy."""

    bundle: Annotated[
        str, Meta(description="Project and name of the bundle, such as ads/flags.", max_length=MAX_REFERENCE_CHARS)
    ]
    version: Annotated[int, Meta(description="Version, such as 3.", ge=1, le=MAX_VERSION)]
    digest: Annotated[
        str,
        Meta(
            description="SHA-256 of the list of its files, such as 2cf24dba…", pattern="^[0-9a-f]{64}$", max_length=64
        ),
    ]


def parse_references(config: Sequence[str], project: str) -> list[BundleReference]:
    return [BundleReference.parse(each, project) for each in config if re.fullmatch(_REFERENCE, each)]


def reference_errors(config: Sequence[str]) -> Iterator[FieldError]:
    """Bundles that would need the same folder."""
    names: dict[str, str] = {}
    for index, text in enumerate(config):
        name = BundleReference.parse(text, "").name if re.fullmatch(_REFERENCE, text) else ""
        if name and name in names:
            what = f"{names[name]} and {text} would both be in the folder {name}"
            yield FieldError(("config", index), what, next="remove one")
        names.setdefault(name, text)


class ConfigFile(StrictStruct, frozen=True):
    """A file of a bundle."""

    path: Annotated[str, Meta(description="Relative path, such as limits/api.toml.", max_length=MAX_PATH_CHARS)]
    digest: Annotated[str, Meta(description="SHA-256 of the content.", pattern="^[0-9a-f]{64}$", max_length=64)]
    size: Annotated[int, Meta(description="Size in bytes.", ge=0, le=MAX_FILE_BYTES)]

    def bundle_file(self) -> BundleFile:
        return BundleFile(self.path, self.digest, self.size)


class PublishConfig(StrictStruct, frozen=True):
    """The files of a new version of a bundle."""

    files: Annotated[list[ConfigFile], Meta(min_length=1, max_length=MAX_FILES)]


class PublishedConfig(LenientStruct, frozen=True):
    """The result of publishing a bundle."""

    version: int = 0
    """0 if contents of files are missing."""
    digest: str = ""
    unchanged: bool = False
    """The current version has these files already."""
    missing: list[str] = []
    """Digests of the contents to upload; then the same request is sent again."""


class ConfigVersion(LenientStruct, frozen=True):
    """One version of a bundle."""

    version: int
    digest: str
    files: int
    size: int
    published_at: str = ""
    published_by: str = ""


class ConfigBundle(LenientStruct, frozen=True):
    """A bundle with its versions, oldest first."""

    project: str
    name: str
    current: int = 0
    """The version that deploys get, and that live workloads follow."""
    versions: list[ConfigVersion] = []
    shared_with: list[str] = []
    """Other projects. Their workloads may read it."""

    def find_version(self, number: int) -> ConfigVersion | None:
        return next((each for each in self.versions if each.version == number), None)

    def readable_by(self, project: str) -> bool:
        return project == self.project or project in self.shared_with


class ConfigContent(LenientStruct, frozen=True):
    """The files of one version of a bundle."""

    version: int
    digest: str
    files: list[ConfigFile] = []


class ConfigPointer(StrictStruct, frozen=True):
    """The version to which a bundle is rolled."""

    version: Annotated[int, Meta(ge=1, le=MAX_VERSION)]


class ConfigShares(StrictStruct, frozen=True):
    """The other projects that may read a bundle."""

    projects: Annotated[list[Annotated[str, Meta(pattern=f"^{_PROJECT}$", max_length=63)]], Meta(max_length=MAX_SHARES)]


class StoredPublish(msgspec.Struct, frozen=True):
    """Request of the desk to the config store."""

    files: list[ConfigFile]
    by: str
    in_use: list[int] = []
    """Versions that workloads have, which must be kept."""
