"""`pin review`: sign that a commit is good; the word is kept beside it, in the repository."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from pincompute.api.attestation import signed
from pincompute.api.build import REVIEWS, reviewed
from pincompute.base.clock import SystemClock
from pincompute.cli.checkout import Checkout
from pincompute.cli.key import read_key


@click.command()
@click.argument("commit", default="HEAD")
@click.option("--key", default="", help="Your key, a file; ~/.ssh/id_ed25519 by default.")
def review(commit: str, key: str) -> None:
    """Sign that a commit is good.

    The word is a git note of the commit, in refs/notes/reviews. It counts where your key stands in the project's
    landing.people, and the commit is not yours.
    """
    checkout = Checkout.around(Path.cwd())
    found = checkout.commit(commit)
    at = SystemClock().now().isoformat(timespec="seconds")
    envelope = signed(reviewed(found, checkout.mine(), at), read_key(key))
    checkout.note(found, msgspec.json.encode(envelope).decode())
    click.echo(f"{found[:12]}  reviewed by {checkout.mine()}        next: git push origin {REVIEWS}")
