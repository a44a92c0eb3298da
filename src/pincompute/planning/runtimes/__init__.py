"""Which runtime a workload is made with, how a new one reaches all of them, and what stays where it is."""
