"""The desk (Job Submission Service): authenticates, reviews, checks quota, records, and submits work to a platform.

- `pipeline` is the way of a submission, from the request to its delivery. Begin there.
- `http` is the API: server, endpoints, OpenAPI. `authn` identifies callers. `limits` protects against overload.
- `store` is the database: record, ledger, outbox, audit log.
- `dispatcher` delivers what is accepted, `ledger_sync` keeps the ledger as the cluster is; both run on the leader only.
"""
