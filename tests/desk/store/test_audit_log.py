"""Pages of the audit log: newest first, of one project or of all, each entry on one page."""

from __future__ import annotations

from pincompute.api.audit import AuditQuery
from pincompute.desk.store.audit_log import read_page
from pincompute.desk.store.record import audit_access
from pincompute.planning.footprint import WorkloadKey
from record_fixtures import NOW, RecordStore


def test_pages_have_each_entry_once(record: RecordStore) -> None:
    with record.begin() as connection:
        for number in range(7):
            key = WorkloadKey("ads" if number % 2 else "search", "PinterestService", f"w{number}")
            audit_access(connection, at=NOW, caller="ann", workload_key=key, act="enter", words="")
        for project, expected in ((None, [6, 5, 4, 3, 2, 1, 0]), ("ads", [5, 3, 1]), ("other", list[int]())):
            names, query, pages = list[str](), AuditQuery(limit=2), 0
            while True:
                page = read_page(connection, query, project)
                names += [each.object for each in page.entries]
                pages += 1
                if page.next is None:
                    break
                query = AuditQuery(limit=2, before=page.next)
            assert names == [f"PinterestService/w{number}" for number in expected]
            assert pages == max(1, -(-len(expected) // 2))
