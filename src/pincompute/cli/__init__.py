"""The command line: parses arguments, calls the desk or a cluster, and prints the result."""
