"""Pages of the audit log."""

from __future__ import annotations

from pincompute.api.audit import AuditEntry, AuditPage, AuditQuery
from pincompute.desk.store.database import Connection
from pincompute.desk.store.tables import audit


def read_page(connection: Connection, query: AuditQuery, project: str | None = None) -> AuditPage:
    """The newest entries, of one project or of all; one more is read, to know whether there is another page."""
    select = audit.select().where(audit.c.number < query.before).order_by(audit.c.number.desc()).limit(query.limit + 1)
    if project is not None:
        select = select.where(audit.c.project == project)
    rows = connection.execute(select).all()
    entries = [
        AuditEntry(
            number=row.number,
            at=row.at,
            caller=row.who,
            act=row.act,
            project=row.project,
            object=row.about,
            submission=row.submission,
            note=row.words,
        )
        for row in rows[: query.limit]
    ]
    return AuditPage(entries, entries[-1].number if len(rows) > query.limit else None)
