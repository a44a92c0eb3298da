"""The ledger: the quota that each workload holds.

A workload has one row for its current state, as the platform shows it, and one row for each accepted submission that
is not yet visible there. Any of these may be its state in a moment, so the largest of them counts: a workload that is
being scaled down holds its former quota until it is down, and nothing else is accepted into it meanwhile.

The rows of a submission end when the platform shows a revision at least as new as its write (`mark_written`), or when
the platform refuses it (`release_reservation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql

from pincompute.desk.store.database import Connection
from pincompute.desk.store.tables import ledger, projects, sums
from pincompute.planning.footprint import COUNTED_RESOURCES, Footprint, WorkloadKey
from pincompute.planning.object_quota import OBJECT_RESOURCES
from pincompute.platforms.protocol import ObservedUsage

CURRENT = ""
"""Takes the place of the submission's id in the row of a workload's current state."""

WorkloadId = tuple[str, str]
"""Kind and name."""

# Statements are built once: they run with every submission, and building one takes longer than executing it.
_INSERT_PROJECT = postgresql.insert(projects).on_conflict_do_nothing()
_LOCK_PROJECT = (
    projects.select()
    .where(projects.c.cluster == sql.bindparam("of_cluster"), projects.c.name == sql.bindparam("of_name"))
    .with_for_update()
)
_HELD = (
    sql.select(ledger.c.kind, ledger.c.name, *(sql.func.max(ledger.c[each]).label(each) for each in COUNTED_RESOURCES))
    .where(*(ledger.c[each] == sql.bindparam(each) for each in ("cluster", "project", "tier")))
    .group_by(ledger.c.kind, ledger.c.name)
)
_own_rows = sql.and_(
    *(ledger.c[each] == sums.c[each] for each in ("cluster", "project", "tier")),
    ledger.c.kind == sql.bindparam("own_kind"),
    ledger.c.name == sql.bindparam("own_name"),
)
_USAGE = (
    sql.select(
        sums.c.tier,
        *(sums.c[each] for each in COUNTED_RESOURCES),
        *(sql.func.sum(ledger.c[each]) for each in COUNTED_RESOURCES),
        *(sql.func.max(ledger.c[each]) for each in COUNTED_RESOURCES),
    )
    .outerjoin_from(sums, ledger, _own_rows)
    .where(*(sums.c[each] == sql.bindparam(each) for each in ("cluster", "project")))
    .group_by(*sums.c)
)
_of_workload = [ledger.c[each] == sql.bindparam(f"of_{each}") for each in ("cluster", *WorkloadKey._fields)]
_of_submission = ledger.c.submission == sql.bindparam("of_submission")
_INSERT = ledger.insert()
_MARK_WRITTEN = ledger.update().where(*_of_workload, _of_submission).values(written=sql.bindparam("revision"))
_DELETE_RESERVATION = ledger.delete().where(*_of_workload, _of_submission)
_DELETE_OBSERVED = ledger.delete().where(
    *_of_workload,
    sql.or_(ledger.c.submission == CURRENT, ledger.c.written <= sql.bindparam("revision")),
)


def lock_project(connection: Connection, cluster: str, project: str) -> None:
    """Locks a project's quota until the end of the transaction."""
    if connection.dialect.name == "sqlite":
        # SQLite has one writer at a time, for the whole database.
        return
    connection.execute(_INSERT_PROJECT, {"cluster": cluster, "name": project})
    connection.execute(_LOCK_PROJECT, {"of_cluster": cluster, "of_name": project})


def _lock_projects(connection: Connection, cluster: str, names: Iterable[str]) -> None:
    """Sorted, so that no two transactions wait for each other. The trigger that keeps `sums` locks rows, too."""
    for name in sorted(names):
        lock_project(connection, cluster, name)


def held_by_workload(connection: Connection, cluster: str, project: str, tier: str) -> dict[WorkloadId, Footprint]:
    """The quota held by each workload of a tier."""
    where = {"cluster": cluster, "project": project, "tier": tier}
    return {(row.kind, row.name): Footprint(tier, *row[2:]) for row in connection.execute(_HELD, where)}


def held_by_tier(connection: Connection, cluster: str, project: str) -> dict[str, dict[WorkloadId, Footprint]]:
    """The quota held by each workload, for each tier in use."""
    select = sql.select(ledger.c.tier).where(ledger.c.cluster == cluster, ledger.c.project == project).distinct()
    tiers = connection.execute(select).scalars().all()
    return {tier: held_by_workload(connection, cluster, project, tier) for tier in tiers}


def own_and_other_usage(
    connection: Connection, cluster: str, key: WorkloadKey, tier: str
) -> tuple[Footprint, Footprint]:
    """The quota held by a workload, and an upper bound of that held by all others of its project together.

    Pods and their requests are those of the tier, objects and storage those of all tiers. The bound adds all rows of a
    workload, although only the largest counts: so one row of `sums` for each tier has it, however many workloads the
    project has. A refusal is computed from the exact numbers (`held_by_tier`).
    """
    where = {"cluster": cluster, "project": key.project, "own_kind": key.kind, "own_name": key.name}
    own, others = dict.fromkeys(COUNTED_RESOURCES, 0), dict.fromkeys(COUNTED_RESOURCES, 0)
    size = len(COUNTED_RESOURCES)
    for of_tier, *row in connection.execute(_USAGE, where):
        total, own_total, own_max = (
            [int(each or 0) for each in row[at : at + size]] for at in range(0, 3 * size, size)
        )
        for number, resource in enumerate(COUNTED_RESOURCES):
            if of_tier == tier or resource in OBJECT_RESOURCES:
                own[resource] = max(own[resource], own_max[number])
                others[resource] += total[number] - own_total[number]
    return Footprint(tier, **own), Footprint(tier, **others)


def reserve(connection: Connection, cluster: str, key: WorkloadKey, submission: str, footprint: Footprint) -> None:
    connection.execute(_INSERT, _row(cluster, key, submission, footprint))


def mark_written(connection: Connection, cluster: str, key: WorkloadKey, submission: str, revision: int) -> None:
    """The platform has written it, and shows it from this revision on."""
    connection.execute(_MARK_WRITTEN, {**_of(cluster, key), "of_submission": submission, "revision": revision})


def release_reservation(connection: Connection, cluster: str, key: WorkloadKey, submission: str) -> None:
    connection.execute(_DELETE_RESERVATION, {**_of(cluster, key), "of_submission": submission})


def apply_observed(connection: Connection, cluster: str, observed: Sequence[ObservedUsage]) -> None:
    """Replaces the current state of some workloads, and ends the reservations of writes that are included in it."""
    _lock_projects(connection, cluster, {each.workload_key.project for each in observed})
    parameters = [{**_of(cluster, each.workload_key), "revision": each.revision} for each in observed]
    if parameters:
        connection.execute(_DELETE_OBSERVED, parameters)
    _insert_current(connection, cluster, observed)


def resync(
    connection: Connection, cluster: str, observed: Sequence[ObservedUsage], revisions: Mapping[str, int]
) -> None:
    """Replaces the current state of all workloads. `revisions` says for each kind up to which write it is complete.

    Reservations of later writes, and of submissions that are not delivered, stay.
    """
    select = sql.select(ledger.c.project).where(ledger.c.cluster == cluster).distinct()
    known = set(connection.execute(select).scalars())
    _lock_projects(connection, cluster, known | {each.workload_key.project for each in observed})
    included = [sql.and_(ledger.c.kind == kind, ledger.c.written <= revision) for kind, revision in revisions.items()]
    replaced = sql.or_(ledger.c.submission == CURRENT, *included)
    connection.execute(ledger.delete().where(ledger.c.cluster == cluster, replaced))
    _insert_current(connection, cluster, observed)


def _insert_current(connection: Connection, cluster: str, observed: Sequence[ObservedUsage]) -> None:
    rows = [
        _row(cluster, each.workload_key, CURRENT, each.footprint) for each in observed if each.footprint is not None
    ]
    if rows:
        connection.execute(_INSERT, rows)


def unobserved_writes(connection: Connection, cluster: str) -> list[WorkloadKey]:
    """The workloads with a write that the platform has not shown yet."""
    select = (
        sql.select(ledger.c.project, ledger.c.kind, ledger.c.name)
        .where(ledger.c.cluster == cluster, ledger.c.written.is_not(None))
        .distinct()
    )
    return [WorkloadKey(*row) for row in connection.execute(select)]


def _of(cluster: str, key: WorkloadKey) -> dict[str, str]:
    return {"of_cluster": cluster, **{f"of_{name}": value for name, value in key._asdict().items()}}


def _row(cluster: str, key: WorkloadKey, submission: str, footprint: Footprint) -> dict[str, object]:
    return {"cluster": cluster, **key._asdict(), "submission": submission, **footprint._asdict()}
