"""The programs that stand beside an application or on a node."""
