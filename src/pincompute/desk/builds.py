"""Finds published builds in the artifact store, and verifies that they may run.

The desk reads the store and the repository itself: what a client or a builder says about a build is not trusted.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial

import msgspec

from pincompute.admission.commits import AcceptedCommit
from pincompute.admission.reviews import Build, ReviewVerdict, requires_review, verify_build
from pincompute.api.attestation import InvalidAttestation, open_envelope
from pincompute.api.build import (
    ATTESTATION_FILE,
    PROVENANCE_TYPE,
    WORKLOAD_FILE,
    Provenance,
    build_folder,
    version_error,
    workload_file_digest,
)
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import BUILD_ALTERED, BUILD_UNKNOWN, LANDING_NOT_CONFIGURED
from pincompute.desk.repository import RepositoryMirrors
from pincompute.desk.store import record
from pincompute.desk.store.database import Database
from pincompute.desk.store.record import VerifiedBuild
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.artifact_store import ArtifactStore

_REPUBLISH = "publish it again under a new version"


class BuildVerifier:
    """The builds of one artifact store."""

    def __init__(self, store: ArtifactStore, repositories: RepositoryMirrors, database: Database | None = None) -> None:
        """Without the database, which records the accepted builds, the whole history of a commit needs reviews."""
        self._store = store
        self._repositories = repositories
        self._database = database

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
        return _open_build(WorkloadKey(project, "", name), version, attestation, file)

    async def review_verdict(
        self, build: Build, project: Project | None, *, allow_stale: bool = False
    ) -> ReviewVerdict:
        """Every link from the commit to the build, verified now; empty if the project accepts unreviewed work.

        With `allow_stale` the repository may be as it was last fetched, if it does not respond.
        """
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
        history = await self._repositories.history(
            landing,
            provenance.commit,
            provenance.source.path,
            await self._accepted_commits(build.project),
            allow_stale=allow_stale,
        )
        # On a thread: users with push access can make this slow.
        return await asyncio.to_thread(verify_build, build, landing, history)

    async def verify_build(self, build: Build, project: Project | None, *, break_glass: bool) -> VerifiedBuild:
        """The verified build, as it is recorded; Refused if a required link does not hold."""
        verdict = await self.review_verdict(build, project)
        refuse_all(verdict.problems(break_glass=break_glass))
        return verified_build(build, verdict)

    async def verify_accepted_build(
        self, key: WorkloadKey, accepted: VerifiedBuild, project: Project | None
    ) -> VerifiedBuild:
        """A build that was accepted before, with today's reviewers; Refused unless it would be accepted now.

        Works without the artifact store, and without the repository if its last fetched state suffices.
        """
        build = _open_build(key, accepted.version, accepted.attestation.encode(), None)
        verdict = await self.review_verdict(build, project, allow_stale=True)
        refuse_all(verdict.problems())
        return verified_build(build, verdict)

    async def _accepted_commits(self, project: str) -> Sequence[AcceptedCommit]:
        if self._database is None:
            return ()
        return await self._database.transact(partial(record.accepted_commits, project=project), slow=True)

    async def _unknown_build(self, project: str, name: str, version: str) -> Refused:
        versions = await self._store.list_names(build_folder(project, name))
        what = f"{project}/{name} has no published version {version}"
        note = f"last published: {', '.join(versions[-10:])}" if versions else "no version was published yet"
        return Refused(Problem(BUILD_UNKNOWN, what, Where(object=f"{project}/{name}"), note=note))


def _open_build(key: WorkloadKey, version: str, attestation: bytes, file: bytes | None) -> Build:
    """A build with its attestation decoded; without its file, the file is taken as signed."""
    where = Where(object=f"{key.project}/{key.name} {version}")
    try:
        envelope, statement = open_envelope(attestation, Provenance, PROVENANCE_TYPE)
    except InvalidAttestation as error:
        what = f"its attestation cannot be read: {error}"
        raise Refused(Problem(BUILD_ALTERED, what, where, next=_REPUBLISH)) from error
    source = statement.predicate.source
    if (source.project, source.name, source.version) != (key.project, key.name, version):
        what = f"its attestation is of {source.project}/{source.name} {source.version}"
        raise Refused(Problem(BUILD_ALTERED, what, where, next=_REPUBLISH))
    digest = workload_file_digest(statement) if file is None else hashlib.sha256(file).hexdigest()
    return Build(key.project, key.name, version, file or b"", digest, envelope, statement)


def verified_build(build: Build, verdict: ReviewVerdict) -> VerifiedBuild:
    provenance, signed = build.statement.predicate, msgspec.json.encode(build.envelope).decode()
    reviewers = ", ".join(sorted(verdict.reviewers))
    return VerifiedBuild(build.version, provenance.commit, provenance.builder, reviewers, signed)
