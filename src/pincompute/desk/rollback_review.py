"""Review of the target of a rollback."""

from __future__ import annotations

from functools import partial

import msgspec

from pincompute.admission.reviews import (
    check_build_genuine,
    check_rollback_reviewed,
    requires_review,
    workload_of_build,
)
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import refuse_if
from pincompute.desk.builds import BuildVerifier
from pincompute.desk.store import record
from pincompute.desk.store.database import Database
from pincompute.desk.store.record import BREAK_GLASS, DEPLOY, VerifiedBuild
from pincompute.planning.footprint import WorkloadKey


async def review_rollback_target(
    database: Database, builds: BuildVerifier, workload: Workload, project: Project | None
) -> VerifiedBuild | None:
    """The build that a rollback brings in, judged as a deploy of it is: by today's reviewers and keys.

    The revision in the cluster is not trusted to say of itself what it was: it is compared with what the desk has
    recorded, or with the published build. None for a file.
    """
    refuse_if(check_rollback_reviewed(project, workload))
    key, version, overridden = WorkloadKey.of(workload), workload.spec.build, workload.spec.break_glass is not None
    if overridden and requires_review(project):
        overrides = partial(record.accepted_by_break_glass, project=key.project, name=key.name)
        refuse_if(check_build_genuine(workload, await database.transact(overrides, slow=True)))
    if not version:
        return None
    verb = BREAK_GLASS if overridden else DEPLOY
    recorded = partial(record.accepted_builds, project=key.project, name=key.name, version=version, verb=verb)
    accepted = await database.transact(recorded, slow=True)
    build = next((each.build for each in accepted if check_build_genuine(workload, [each.workload]) is None), None)
    if overridden or not requires_review(project):
        return build
    if build:
        return await builds.verify_accepted_build(key, build, project)
    # It was accepted by another desk, or is no build at all: compared with what is published under its name.
    published = await builds.find_build(key.project, key.name, version)
    verified = await builds.verify_build(published, project, break_glass=False)
    refuse_if(check_build_genuine(_without_config_versions(workload), [workload_of_build(published)]))
    return verified


def _without_config_versions(workload: Workload) -> Workload:
    """As in a file, which has no versions of bundles; those of the revision have been found in the config store."""
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, config_versions=[]))
