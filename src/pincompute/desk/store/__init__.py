"""The desk's database: SQLite in a file, or PostgreSQL.

- `record`: submissions, the decisions on them, revisions, verified builds and the audit log. Only ever added to.
- `ledger`: the quota that each workload holds now.
- `outbox`: accepted commands that must reach their platform.
- `former_spellings` reads what the previous release has written.
"""
