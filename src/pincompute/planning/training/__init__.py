"""Training jobs: gang scheduling, the common result of all replicas, and its diagnosis."""
