"""The thought, pure: what a workload becomes, and which steps lead there."""
