"""Log lines of a workload, read from the kubelet and from the log store as one stream."""
