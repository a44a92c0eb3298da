"""The ledger: what each workload holds of its project's quota.

A workload has one row for what it is by now, as the platform shows it, and one for each submission that was accepted
and has not been seen there. Any of these may come true, so the most of them counts: what is on its way down holds what
it had until it is down, and nobody takes that meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from pincompute.planning.quotas.footprint import COUNTED, Footprint, Place
from pincompute.submission.database import Connection
from pincompute.submission.platform import Seen
from pincompute.submission.tables import ledger, projects

STANDS = ""
"""In place of a submission: what the platform shows."""

Holder = tuple[str, str]
"""Kind and name."""

# These are asked with every submission, and putting a statement together takes longer than what it asks for.
_KNOWN = {each.__name__.split(".")[-1]: each.insert(projects).on_conflict_do_nothing() for each in (postgresql, sqlite)}
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
_own = sql.and_(ledger.c.kind == sql.bindparam("own_kind"), ledger.c.name == sql.bindparam("own_name"))
_OWN = sql.select(*(sql.func.max(ledger.c[each]) for each in COUNTED)).where(*_of_tier, _own)
_OTHERS = sql.select(*(sql.func.sum(ledger.c[each]) for each in COUNTED)).where(*_of_tier, sql.not_(_own))


def lock(connection: Connection, cluster: str, project: str) -> None:
    """Who takes from a project's quota is alone with it until the end of the transaction."""
    row = {"cluster": cluster, "name": project}
    connection.execute(_KNOWN[connection.dialect.name], row)
    # SQLite, which has one writer at a time, says nothing of this.
    connection.execute(_LOCKED, {"of": cluster, "called": project})


def held(connection: Connection, cluster: str, project: str, tier: str) -> dict[Holder, Footprint]:
    """By every workload of a tier."""
    asked = {"cluster": cluster, "project": project, "tier": tier}
    return {(row.kind, row.name): Footprint(tier, *row[2:]) for row in connection.execute(_HELD, asked)}


def taken(connection: Connection, cluster: str, place: Place, tier: str) -> tuple[Footprint, Footprint]:
    """By a workload of a tier; and by all others of its project together, or a little more than that.

    Each of their rows is added, although of those of one workload only the most counts: that takes a sixth of the time.
    """
    asked = {"cluster": cluster, "project": place.project, "tier": tier, "own_kind": place.kind, "own_name": place.name}
    own, others = (connection.execute(each, asked).one() for each in (_OWN, _OTHERS))
    # Where there are none, there is no sum either.
    return Footprint(tier, *(each or 0 for each in own)), Footprint(tier, *(int(each or 0) for each in others))


def total(footprints: Iterable[Footprint]) -> Footprint:
    all_ = tuple(footprints)
    return Footprint("", *(sum(getattr(each, name) for each in all_) for name in COUNTED))


def take(connection: Connection, cluster: str, place: Place, submission: str, footprint: Footprint) -> None:
    connection.execute(ledger.insert(), _row(cluster, place, submission, footprint))


def written(connection: Connection, submission: str, revision: int) -> None:
    """The platform has it, and will show it from this revision on."""
    connection.execute(ledger.update().where(ledger.c.submission == submission).values(written=revision))


def release(connection: Connection, submission: str) -> None:
    """Nothing comes of it."""
    connection.execute(ledger.delete().where(ledger.c.submission == submission))


def settle(connection: Connection, cluster: str, seen: Iterable[Seen]) -> None:
    """What a workload is by now takes the place of what was written before that."""
    for each in seen:
        here = (ledger.c.cluster == cluster, *(ledger.c[name] == value for name, value in each.place._asdict().items()))
        shown = sql.or_(ledger.c.submission == STANDS, ledger.c.written <= each.revision)
        connection.execute(ledger.delete().where(*here, shown))
        if each.footprint is not None:
            connection.execute(ledger.insert(), _row(cluster, each.place, STANDS, each.footprint))


def restore(connection: Connection, cluster: str, seen: Sequence[Seen], upto: Mapping[str, int]) -> None:
    """All that is there, of each kind up to a revision: what is on its way, or came later, is left beside it."""
    come = [sql.and_(ledger.c.kind == kind, ledger.c.written <= revision) for kind, revision in upto.items()]
    over = sql.or_(ledger.c.submission == STANDS, *come)
    connection.execute(ledger.delete().where(ledger.c.cluster == cluster, over))
    rows = [_row(cluster, each.place, STANDS, each.footprint) for each in seen if each.footprint is not None]
    if rows:
        connection.execute(ledger.insert(), rows)


def unsettled(connection: Connection, cluster: str) -> list[Place]:
    """Whose writing has not been seen yet."""
    asked = (
        sql.select(ledger.c.project, ledger.c.kind, ledger.c.name)
        .where(ledger.c.cluster == cluster, ledger.c.written.is_not(None))
        .distinct()
    )
    return [Place(*row) for row in connection.execute(asked)]


def _row(cluster: str, place: Place, submission: str, footprint: Footprint) -> dict[str, object]:
    return {"cluster": cluster, **place._asdict(), "submission": submission, **footprint._asdict()}
