"""What people ask of a workload, and what they do to it."""
