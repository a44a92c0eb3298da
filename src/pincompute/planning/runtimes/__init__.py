"""Runtimes: which one a workload gets, and how a roll brings a new one to all workloads, in place where possible."""
