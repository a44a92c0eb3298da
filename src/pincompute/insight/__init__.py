"""The insight process: watch caches of a cluster for all readers, a stream of changes, and the history of workloads."""
