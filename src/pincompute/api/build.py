"""Build: a workload file with its version, its images' digests and who says so; and what a review says of a commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from pincompute.api.attestation import Predicate, Said, Statement, Subject
from pincompute.api.names import GROUP

BUILT = "https://slsa.dev/provenance/v1"
REVIEWED = f"https://{GROUP}/review/v1"
BUILD_TYPE = f"https://{GROUP}/build/v1"
FILE = "workload.yaml"
"""What a published workload file is called."""
ATTESTATION = "build.intoto.json"
"""It is put last: a build is there once this is."""
REVIEWS = "refs/notes/reviews"
"""In a repository: a note of a commit has a review a line."""
VERSION = r"[A-Za-z0-9][-A-Za-z0-9_.+]{0,62}"
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def folder(project: str, name: str, version: str = "") -> str:
    """Where it lies in a store."""
    return "/".join(filter(None, ("builds", project, name, version)))


def version_fault(version: str) -> str:
    """Why nothing can be published as it."""
    if not re.fullmatch(VERSION, version) or ".." in version:
        return f"'{version}' cannot be a version: letters, digits and - _ . + within, at most 63"
    return ""


class Source(Said, frozen=True, kw_only=True):
    """What was built: where it lies in which repository."""

    project: str
    name: str
    version: str
    repository: str
    branch: str
    path: str
    """Of the workload file, from the top of the repository."""


class Ingredient(Said, frozen=True, kw_only=True):
    """What went in, by what cannot change."""

    uri: str
    digest: dict[str, str]


class Definition(Said, frozen=True, kw_only=True, omit_defaults=False):
    build_type: str = BUILD_TYPE
    external_parameters: Source
    resolved_dependencies: list[Ingredient]


class Builder(Said, frozen=True, kw_only=True):
    id: str


class Run(Said, frozen=True, kw_only=True):
    finished_on: Annotated[str, Meta(max_length=64)] = ""
    invocation_id: Annotated[str, Meta(max_length=512)] = ""
    """Such as the address of the run that CI made."""


class Details(Said, frozen=True, kw_only=True):
    builder: Builder
    metadata: Run = Run()


class Provenance(Predicate, frozen=True, kw_only=True):
    """SLSA's, as far as it is looked at here."""

    build_definition: Definition
    run_details: Details

    @property
    def source(self) -> Source:
        return self.build_definition.external_parameters

    @property
    def commit(self) -> str:
        found = (each.digest.get("gitCommit", "") for each in self.build_definition.resolved_dependencies)
        return next(filter(None, found), "")

    @property
    def builder(self) -> str:
        return self.run_details.builder.id


class Approval(Predicate, frozen=True, kw_only=True):
    """That a commit was looked at and found good; the subject says which."""

    reviewer: str
    at: str = ""


Built = Statement[Provenance]
Reviewed = Statement[Approval]


def built(source: Source, commit: str, file: str, images: dict[str, str], details: Details) -> Built:
    """`file` is the SHA-256 of the workload file, `images` says for each its digest, such as sha256:…."""
    subjects = [Subject(name=FILE, digest={"sha256": file})]
    subjects += [Subject(name=name, digest=_digest(digest)) for name, digest in sorted(images.items())]
    origin = Ingredient(uri=f"git+{source.repository}", digest={"gitCommit": commit})
    definition = Definition(external_parameters=source, resolved_dependencies=[origin])
    provenance = Provenance(build_definition=definition, run_details=details)
    return Statement(subject=subjects, predicate_type=BUILT, predicate=provenance)


def reviewed(commit: str, reviewer: str, at: str) -> Reviewed:
    subject = Subject(name="commit", digest={"gitCommit": commit})
    return Statement(subject=[subject], predicate_type=REVIEWED, predicate=Approval(reviewer=reviewer, at=at))


def file_digest(built: Built) -> str:
    return next((each.digest.get("sha256", "") for each in built.subject if each.name == FILE), "")


def images(built: Built) -> dict[str, str]:
    """By the name that stands in the file: what it was when it was built."""
    found = {each.name: each.digest.get("sha256", "") for each in built.subject if each.name != FILE}
    return {name: f"sha256:{digest}" for name, digest in found.items() if DIGEST.fullmatch(f"sha256:{digest}")}


def image_places(spec: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a workload's spec names an image: in its short form, in its template, and in those of its roles."""
    for part in (spec, *filter(None, spec.get("roles", {}).values())):
        pod = part.get("template", {}).get("spec") or {}
        containers = [each for group in ("containers", "initContainers") for each in pod.get(group) or ()]
        yield from ((each, "image") for each in (part, *containers) if each.get("image"))
        mounted = [each.get("image") or {} for each in pod.get("volumes") or ()]
        yield from ((each, "reference") for each in mounted if each.get("reference"))


def _digest(text: str) -> dict[str, str]:
    algorithm, _, value = text.partition(":")
    return {algorithm: value}
