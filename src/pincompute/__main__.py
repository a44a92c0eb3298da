"""`python -m pincompute` is `pin`: how one process of ours starts another."""

from pincompute.main import main

main()
