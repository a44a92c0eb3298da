"""The reconcile loop of the operator: key, snapshot, plan, diff, apply, status.

A watch event names a key (a workload, a project, a runtime). The key waits in a work queue and is then reconciled in
one *pass*: the cache is frozen into a snapshot, a pure planner turns the snapshot into a plan, the plan is compared
with the natives that exist, the difference is applied step by step, and the status is written.

The loop guarantees:

- **One pass per key at a time.** Events that arrive during a pass cause exactly one further pass.
- **Nothing is remembered between passes that a restart would need.** Each pass plans from scratch from what the cluster
  holds, so a crash between any two requests is the same as a fresh start. What a pass does keep in memory only spares
  requests (own last writes, deletions under way) and may be lost at any time.
- **No pass acts on a cache older than its own last write.** Otherwise it would create again what it has just created.
- **A pass that finds everything as wanted sends no request.**
- **Every write carries a precondition** (uid or resourceVersion), so a decision is applied to the very object that it
  was made for, or not at all.
- **One failing key never stops another.** Failures are retried with backoff and shown in the status of the owner.

`loop` schedules passes, `reconcile` is one pass, `cluster_cache` is where snapshots come from, `apply` turns steps into
requests. Planning itself is in `pincompute.planning` and does no I/O.
"""
