"""The simulator: the real operator on a model of Kubernetes, where time costs nothing and faults are chosen."""
