"""Builds: the provenance statement of a published workload file, and the review statement of a commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from pincompute.api.attestation import AttestationPart, Predicate, Statement, Subject
from pincompute.api.names import GROUP

PROVENANCE_TYPE = "https://slsa.dev/provenance/v1"
REVIEW_TYPE = f"https://{GROUP}/review/v1"
BUILD_TYPE = f"https://{GROUP}/build/v1"
WORKLOAD_FILE = "workload.yaml"
"""File name of the workload in a published build."""
ATTESTATION_FILE = "build.intoto.json"
"""Uploaded last: a build is complete once its attestation exists."""
REVIEW_NOTES_REF = "refs/notes/reviews"
"""Git notes ref in which each line of a commit's note is one review."""
VERSION_PATTERN = r"[A-Za-z0-9][-A-Za-z0-9_.+]{0,62}"
COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")


def build_folder(project: str, name: str, version: str = "") -> str:
    """Path of a build in the artifact store."""
    return "/".join(filter(None, ("builds", project, name, version)))


def version_error(version: str) -> str:
    """Why the text is not a valid version; empty if it is."""
    if not re.fullmatch(VERSION_PATTERN, version) or ".." in version:
        return f"invalid version '{version}': at most 63 letters, digits and - _ . +, beginning with a letter or digit"
    return ""


class BuildSource(AttestationPart, frozen=True, kw_only=True):
    """Origin of a build: repository, branch and path of the workload file."""

    project: str
    name: str
    version: str
    repository: str
    branch: str
    path: str
    """Path of the workload file from the root of the repository."""


class ResourceDescriptor(AttestationPart, frozen=True, kw_only=True):
    """An input of the build, identified by digest."""

    uri: str
    digest: dict[str, str]


class BuildDefinition(AttestationPart, frozen=True, kw_only=True, omit_defaults=False):
    build_type: str = BUILD_TYPE
    external_parameters: BuildSource
    resolved_dependencies: list[ResourceDescriptor]


class Builder(AttestationPart, frozen=True, kw_only=True):
    id: str


class RunMetadata(AttestationPart, frozen=True, kw_only=True):
    finished_on: Annotated[str, Meta(max_length=64)] = ""
    invocation_id: Annotated[str, Meta(max_length=512)] = ""
    """Such as the URL of the CI run."""


class RunDetails(AttestationPart, frozen=True, kw_only=True):
    builder: Builder
    metadata: RunMetadata = RunMetadata()


class Provenance(Predicate, frozen=True, kw_only=True):
    """The part of a SLSA provenance predicate that PinCompute reads."""

    build_definition: BuildDefinition
    run_details: RunDetails

    @property
    def source(self) -> BuildSource:
        return self.build_definition.external_parameters

    @property
    def commit(self) -> str:
        commits = (each.digest.get("gitCommit", "") for each in self.build_definition.resolved_dependencies)
        return next(filter(None, commits), "")

    @property
    def builder(self) -> str:
        return self.run_details.builder.id


class Approval(Predicate, frozen=True, kw_only=True):
    """Approval of the commit that is the subject of the statement."""

    reviewer: str
    at: str = ""


ProvenanceStatement = Statement[Provenance]
ReviewStatement = Statement[Approval]


def provenance_statement(
    source: BuildSource, commit: str, file: str, images: dict[str, str], details: RunDetails
) -> ProvenanceStatement:
    """Build a statement from the SHA-256 of the workload file and the digest (`sha256:…`) of each image."""
    subjects = [Subject(name=WORKLOAD_FILE, digest={"sha256": file})]
    subjects += [Subject(name=name, digest=_digest_set(digest)) for name, digest in sorted(images.items())]
    origin = ResourceDescriptor(uri=f"git+{source.repository}", digest={"gitCommit": commit})
    definition = BuildDefinition(external_parameters=source, resolved_dependencies=[origin])
    provenance = Provenance(build_definition=definition, run_details=details)
    return Statement(subject=subjects, predicate_type=PROVENANCE_TYPE, predicate=provenance)


def review_statement(commit: str, reviewer: str, at: str) -> ReviewStatement:
    subject = Subject(name="commit", digest={"gitCommit": commit})
    return Statement(subject=[subject], predicate_type=REVIEW_TYPE, predicate=Approval(reviewer=reviewer, at=at))


def workload_file_digest(statement: ProvenanceStatement) -> str:
    return next((each.digest.get("sha256", "") for each in statement.subject if each.name == WORKLOAD_FILE), "")


def image_digests(statement: ProvenanceStatement) -> dict[str, str]:
    """Digest of each image at build time, by the name written in the file."""
    digests = {each.name: each.digest.get("sha256", "") for each in statement.subject if each.name != WORKLOAD_FILE}
    return {
        name: f"sha256:{digest}" for name, digest in digests.items() if DIGEST_PATTERN.fullmatch(f"sha256:{digest}")
    }


def image_fields(spec: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Every field of a workload's spec that names an image: short form, template, and the templates of roles."""
    for part in (spec, *filter(None, spec.get("roles", {}).values())):
        pod = part.get("template", {}).get("spec") or {}
        containers = [each for group in ("containers", "initContainers") for each in pod.get(group) or ()]
        yield from ((each, "image") for each in (part, *containers) if each.get("image"))
        mounted = [each.get("image") or {} for each in pod.get("volumes") or ()]
        yield from ((each, "reference") for each in mounted if each.get("reference"))


def _digest_set(text: str) -> dict[str, str]:
    algorithm, _, value = text.partition(":")
    return {algorithm: value}
