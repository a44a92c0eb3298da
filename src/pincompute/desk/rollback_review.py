"""Review of the target of a rollback."""

from __future__ import annotations

from functools import partial

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
from pincompute.planning.footprint import WorkloadKey


async def check_rollback_target(
    database: Database, builds: BuildVerifier, workload: Workload, project: Project | None
) -> None:
    """A rollback brings content in like a deploy does, so it is judged like one: by today's reviewers and keys.

    The revision in the cluster is not trusted to say of itself what it was: it is compared with what the desk has
    recorded, or with the published build.
    """
    refuse_if(check_rollback_reviewed(project, workload))
    if not requires_review(project):
        return
    key, version = WorkloadKey.of(workload), workload.spec.build
    if workload.spec.break_glass:
        overrides = partial(record.accepted_by_break_glass, project=key.project, name=key.name)
        refuse_if(check_build_genuine(workload, await database.transact(overrides, slow=True)))
        return
    recorded = partial(record.accepted_builds, project=key.project, name=key.name, version=version)
    accepted = await database.transact(recorded, slow=True)
    same = [each for each in accepted if check_build_genuine(workload, [each.workload]) is None]
    if same:
        await builds.verify_accepted_build(key, version, same[0].attestation, project)
        return
    # It was accepted by another desk, or is no build at all: compared with what is published under its name.
    build = await builds.find_build(key.project, key.name, version)
    await builds.verify_build(build, project, break_glass=False)
    refuse_if(check_build_genuine(workload, [workload_of_build(build)]))
