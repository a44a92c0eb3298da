"""The ledger: what each workload holds of its project's quota.

A workload has one row for what it is by now, as the platform shows it, and one for each submission that was accepted
and has not been seen there. Any of these may come true, so the most of them counts: what is on its way down holds what
it had until it is down, and nobody takes that meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql

from pincompute.planning.quotas.footprint import COUNTED, Footprint, Place
from pincompute.submission.database import Connection
from pincompute.submission.platform import Seen
from pincompute.submission.tables import ledger, projects, sums

STANDS = ""
"""In place of a submission: what the platform shows."""

Holder = tuple[str, str]
"""Kind and name."""

# These are asked with every submission, and putting a statement together takes longer than what it asks for.
_KNOWN = postgresql.insert(projects).on_conflict_do_nothing()
_LOCKED = (
    projects.select()
    .where(projects.c.cluster == sql.bindparam("of"), projects.c.name == sql.bindparam("called"))
    .with_for_update()
)
_of_tier = [ledger.c[each] == sql.bindparam(each) for each in ("cluster", "project", "tier")]
_HELD = (
    sql.select(ledger.c.kind, ledger.c.name, *(sql.func.max(ledger.c[each]).label(each) for each in COUNTED))
    .where(*_of_tier)
    .group_by(ledger.c.kind, ledger.c.name)
)
_own = sql.and_(
    *(ledger.c[each] == sums.c[each] for each in ("cluster", "project", "tier")),
    ledger.c.kind == sql.bindparam("own_kind"),
    ledger.c.name == sql.bindparam("own_name"),
)
_TAKEN = (
    sql.select(
        *(sums.c[each] for each in COUNTED),
        *(sql.func.sum(ledger.c[each]) for each in COUNTED),
        *(sql.func.max(ledger.c[each]) for each in COUNTED),
    )
    .outerjoin_from(sums, ledger, _own)
    .where(*(sums.c[each] == sql.bindparam(each) for each in ("cluster", "project", "tier")))
    .group_by(*sums.c)
)
_SIZE = len(COUNTED)
_of_place = [ledger.c[each] == sql.bindparam(f"of_{each}") for each in ("cluster", *Place._fields)]
_of_submission = ledger.c.submission == sql.bindparam("of_submission")
_TAKE = ledger.insert()
_WRITTEN = ledger.update().where(*_of_place, _of_submission).values(written=sql.bindparam("revision"))
_RELEASE = ledger.delete().where(*_of_place, _of_submission)
_SHOWN = ledger.delete().where(
    *_of_place,
    sql.or_(ledger.c.submission == STANDS, ledger.c.written <= sql.bindparam("revision")),
)


def lock(connection: Connection, cluster: str, project: str) -> None:
    """Who takes from a project's quota is alone with it until the end of the transaction."""
    if connection.dialect.name == "sqlite":
        # It has one writer at a time, who is alone with all there is.
        return
    connection.execute(_KNOWN, {"cluster": cluster, "name": project})
    connection.execute(_LOCKED, {"of": cluster, "called": project})


def _lock_all(connection: Connection, cluster: str, projects: Iterable[str]) -> None:
    """In one order, so that no two wait for each other: also what only counts holds sums of theirs meanwhile."""
    for each in sorted(projects):
        lock(connection, cluster, each)


def held(connection: Connection, cluster: str, project: str, tier: str) -> dict[Holder, Footprint]:
    """By every workload of a tier."""
    asked = {"cluster": cluster, "project": project, "tier": tier}
    return {(row.kind, row.name): Footprint(tier, *row[2:]) for row in connection.execute(_HELD, asked)}


def by_tier(connection: Connection, cluster: str, project: str) -> dict[str, dict[Holder, Footprint]]:
    """By every workload of each tier that is used."""
    asked = sql.select(ledger.c.tier).where(ledger.c.cluster == cluster, ledger.c.project == project).distinct()
    tiers = connection.execute(asked).scalars().all()
    return {tier: held(connection, cluster, project, tier) for tier in tiers}


def taken(connection: Connection, cluster: str, place: Place, tier: str) -> tuple[Footprint, Footprint]:
    """By a workload of a tier; and by all others of its project together, or a little more than that.

    Each of their rows is added, although of those of one workload only the most counts: so the database has the sum.
    """
    asked = {"cluster": cluster, "project": place.project, "tier": tier, "own_kind": place.kind, "own_name": place.name}
    # Where there are none, there is no sum either.
    found = connection.execute(_TAKEN, asked).first() or [0] * 3 * _SIZE
    all_, own, most = ([int(each or 0) for each in found[at : at + _SIZE]] for at in range(0, 3 * _SIZE, _SIZE))
    others = (every - each for every, each in zip(all_, own, strict=True))
    return Footprint(tier, *most), Footprint(tier, *others)


def take(connection: Connection, cluster: str, place: Place, submission: str, footprint: Footprint) -> None:
    connection.execute(_TAKE, _row(cluster, place, submission, footprint))


def written(connection: Connection, cluster: str, place: Place, submission: str, revision: int) -> None:
    """The platform has it, and will show it from this revision on."""
    connection.execute(_WRITTEN, {**_at(cluster, place), "of_submission": submission, "revision": revision})


def release(connection: Connection, cluster: str, place: Place, submission: str) -> None:
    """Nothing comes of it."""
    connection.execute(_RELEASE, {**_at(cluster, place), "of_submission": submission})


def settle(connection: Connection, cluster: str, seen: Sequence[Seen]) -> None:
    """What a workload is by now takes the place of what was written before that; each place is seen once."""
    _lock_all(connection, cluster, {each.place.project for each in seen})
    shown = [{**_at(cluster, each.place), "revision": each.revision} for each in seen]
    if shown:
        connection.execute(_SHOWN, shown)
    _stand(connection, cluster, seen)


def restore(connection: Connection, cluster: str, seen: Sequence[Seen], upto: Mapping[str, int]) -> None:
    """All that is there, of each kind up to a revision: what is on its way, or came later, is left beside it."""
    there = sql.select(ledger.c.project).where(ledger.c.cluster == cluster).distinct()
    known = set(connection.execute(there).scalars())
    _lock_all(connection, cluster, known | {each.place.project for each in seen})
    come = [sql.and_(ledger.c.kind == kind, ledger.c.written <= revision) for kind, revision in upto.items()]
    over = sql.or_(ledger.c.submission == STANDS, *come)
    connection.execute(ledger.delete().where(ledger.c.cluster == cluster, over))
    _stand(connection, cluster, seen)


def _stand(connection: Connection, cluster: str, seen: Sequence[Seen]) -> None:
    rows = [_row(cluster, each.place, STANDS, each.footprint) for each in seen if each.footprint is not None]
    if rows:
        connection.execute(_TAKE, rows)


def unsettled(connection: Connection, cluster: str) -> list[Place]:
    """Whose writing has not been seen yet."""
    asked = (
        sql.select(ledger.c.project, ledger.c.kind, ledger.c.name)
        .where(ledger.c.cluster == cluster, ledger.c.written.is_not(None))
        .distinct()
    )
    return [Place(*row) for row in connection.execute(asked)]


def _at(cluster: str, place: Place) -> dict[str, str]:
    return {"of_cluster": cluster, **{f"of_{name}": value for name, value in place._asdict().items()}}


def _row(cluster: str, place: Place, submission: str, footprint: Footprint) -> dict[str, object]:
    return {"cluster": cluster, **place._asdict(), "submission": submission, **footprint._asdict()}
