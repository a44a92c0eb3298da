"""Finds published builds in the artifact store, and verifies that they may run.

The desk reads the store and the repository itself: what a client or a builder says about a build is not trusted.
"""

from __future__ import annotations

import hashlib

import msgspec

from pincompute.admission.reviews import Build, ReviewVerdict, requires_review, verify_build
from pincompute.api.attestation import InvalidAttestation, open_envelope
from pincompute.api.build import (
    ATTESTATION_FILE,
    PROVENANCE_TYPE,
    WORKLOAD_FILE,
    Provenance,
    build_folder,
    version_error,
)
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import BUILD_ALTERED, BUILD_UNKNOWN, LANDING_NOT_CONFIGURED
from pincompute.desk.repository import RepositoryMirrors
from pincompute.desk.store.record import VerifiedBuild
from pincompute.platforms.artifact_store import ArtifactStore

_REPUBLISH = "publish it again under a new version"


class BuildVerifier:
    """The builds of one artifact store."""

    def __init__(self, store: ArtifactStore, repositories: RepositoryMirrors) -> None:
        self._store = store
        self._repositories = repositories

    async def find_build(self, project: str, name: str, version: str) -> Build:
        """A build as it was published. Whether it may run is not verified yet."""
        where = Where(object=f"{project}/{name} {version}")
        if error := version_error(version):
            raise Refused(Problem(BUILD_UNKNOWN, error, where))
        folder = build_folder(project, name, version)
        # The attestation is uploaded last: without it, the build is still being published.
        attestation = await self._store.get(f"{folder}/{ATTESTATION_FILE}")
        file = await self._store.get(f"{folder}/{WORKLOAD_FILE}") if attestation is not None else None
        if attestation is None or file is None:
            raise await self._unknown_build(project, name, version)
        try:
            envelope, statement = open_envelope(attestation, Provenance, PROVENANCE_TYPE)
        except InvalidAttestation as error:
            what = f"its attestation cannot be read: {error}"
            raise Refused(Problem(BUILD_ALTERED, what, where, next=_REPUBLISH)) from error
        source = statement.predicate.source
        if (source.project, source.name, source.version) != (project, name, version):
            what = f"its attestation is of {source.project}/{source.name} {source.version}"
            raise Refused(Problem(BUILD_ALTERED, what, where, next=_REPUBLISH))
        return Build(project, name, version, file, hashlib.sha256(file).hexdigest(), envelope, statement)

    async def review_verdict(self, build: Build, project: Project | None) -> ReviewVerdict:
        """Every link from the commit to the build, verified now; empty if the project accepts unreviewed work."""
        landing = project.spec.landing if project else None
        if project is None or landing is None:
            if not requires_review(project):
                return ReviewVerdict()
            name = project.metadata.name
            what = f"project {name} accepts reviewed and landed work only, and has no repository configured"
            raise Refused(
                Problem(LANDING_NOT_CONFIGURED, what, Where(object=name), next=f"kubectl edit project {name}")
            )
        provenance = build.statement.predicate
        history = await self._repositories.history(landing, provenance.commit, provenance.source.path)
        return verify_build(build, landing, history)

    async def verify_build(self, build: Build, project: Project | None, *, break_glass: bool) -> VerifiedBuild:
        """The verified build, as it is recorded; Refused if a required link does not hold."""
        verdict = await self.review_verdict(build, project)
        refuse_all(verdict.problems(break_glass=break_glass))
        return verified_build(build, verdict)

    async def _unknown_build(self, project: str, name: str, version: str) -> Refused:
        versions = await self._store.list_names(build_folder(project, name))
        what = f"{project}/{name} has no published version {version}"
        note = f"last published: {', '.join(versions[-10:])}" if versions else "no version was published yet"
        return Refused(Problem(BUILD_UNKNOWN, what, Where(object=f"{project}/{name}"), note=note))


def verified_build(build: Build, verdict: ReviewVerdict) -> VerifiedBuild:
    provenance, signed = build.statement.predicate, msgspec.json.encode(build.envelope).decode()
    reviewers = ", ".join(sorted(verdict.reviewers))
    return VerifiedBuild(build.version, provenance.commit, provenance.builder, reviewers, signed)
