"""Service discovery: registers ready pods in ZooKeeper, and gives workloads the addresses of those they call."""
