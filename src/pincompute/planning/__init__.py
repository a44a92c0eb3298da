"""Pure planning: computes the Kubernetes objects that a workload becomes, and the steps that lead there.

Each pass of the controller calls three functions in a row:

- `kinds.planners` picks the planner of a kind. It maps a `Snapshot` (the workload and its objects as they are in the
  cluster) to a `Plan` (the objects as they should be, and the new status).
- `diff.diff` compares the plan with the snapshot and returns steps: create, apply, delete, evict and so on.
- The controller applies the steps. It decides nothing of its own.

Nothing in this package does I/O, reads a clock or draws a random number, and no pass remembers anything outside the
cluster. A pass after a crash at any point is therefore the same as a first pass. Planning the same snapshot twice
gives the same plan; `tests/planning/test_properties.py` checks both for every kind.
"""
