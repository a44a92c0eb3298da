"""`python -m pincompute` runs `pin`; processes of the platform start each other this way."""

from pincompute.main import main

main()
