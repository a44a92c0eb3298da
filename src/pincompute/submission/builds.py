"""Builds: what lies in the artifact store, and whether it may run. The desk looks itself, and takes nobody's word."""

from __future__ import annotations

import hashlib

import msgspec

from pincompute.api.attestation import NotSaid, opened
from pincompute.api.build import ATTESTATION, BUILT, FILE, Provenance, folder, version_fault
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import BUILD_ALTERED, BUILD_UNKNOWN, LANDING_UNKNOWN
from pincompute.kube.artifacts import Store
from pincompute.planning.landing import Build, Verdict, judge, only_landed
from pincompute.submission.record import Vouched
from pincompute.submission.repository import Repositories


class Builds:
    def __init__(self, store: Store, repositories: Repositories) -> None:
        self._store = store
        self._repositories = repositories

    async def find(self, project: str, name: str, version: str) -> Build:
        """As it was published; nothing is known yet of whether it may run."""
        where = Where(object=f"{project}/{name} {version}")
        if why := version_fault(version):
            raise Refused(Problem(BUILD_UNKNOWN, why, where))
        place = folder(project, name, version)
        # It is put last, so that what is being published is not there yet.
        attested = await self._store.get(f"{place}/{ATTESTATION}")
        file = await self._store.get(f"{place}/{FILE}") if attested is not None else None
        if attested is None or file is None:
            raise await self._unknown(project, name, version)
        try:
            envelope, built = opened(attested, Provenance, BUILT)
        except NotSaid as error:
            what = f"its attestation cannot be read: {error}"
            raise Refused(Problem(BUILD_ALTERED, what, where, next="publish it anew")) from error
        source = built.predicate.source
        if (source.project, source.name, source.version) != (project, name, version):
            what = f"its attestation is of {source.project}/{source.name} {source.version}"
            raise Refused(Problem(BUILD_ALTERED, what, where, next="publish it anew"))
        return Build(project, name, version, file, hashlib.sha256(file).hexdigest(), envelope, built)

    async def verdict(self, build: Build, project: Project | None) -> Verdict:
        """All that is asked of it, looked at now; nothing where the project takes anything."""
        landing = project.spec.landing if project else None
        if project is None or landing is None:
            if not only_landed(project):
                return Verdict()
            name = project.metadata.name
            what = f"the project {name} takes only what was reviewed and landed, and does not say where that lies"
            raise Refused(Problem(LANDING_UNKNOWN, what, Where(object=name), next=f"kubectl edit project {name}"))
        provenance = build.built.predicate
        history = await self._repositories.history(landing, provenance.commit, provenance.source.path)
        return judge(build, landing, history)

    async def vouch(self, build: Build, project: Project | None, *, glass: bool) -> Vouched:
        """The same for the record; refused where one link does not hold that must."""
        found = await self.verdict(build, project)
        refuse_all(found.problems(glass=glass))
        return vouched_for(build, found)

    async def _unknown(self, project: str, name: str, version: str) -> Refused:
        there = await self._store.names(folder(project, name))
        what = f"nothing was published as {version}"
        note = f"there are: {', '.join(there[-10:])}" if there else f"nothing of {project}/{name} was published yet"
        return Refused(Problem(BUILD_UNKNOWN, what, Where(object=f"{project}/{name}"), note=note))


def vouched_for(build: Build, verdict: Verdict) -> Vouched:
    provenance, signed = build.built.predicate, msgspec.json.encode(build.envelope).decode()
    reviewers = ", ".join(sorted(verdict.reviewers))
    return Vouched(build.version, provenance.commit, provenance.builder, reviewers, signed)
