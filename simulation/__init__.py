"""The simulator: the real operator on a model of Kubernetes, in one process, where time costs nothing and faults are chosen."""
