"""`pin review`: approves a commit by a signed git note."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from pincompute.api.attestation import sign_statement
from pincompute.api.build import REVIEW_NOTES_REF, review_statement
from pincompute.base.clock import SystemClock
from pincompute.cli.checkout import Checkout
from pincompute.cli.signing_key import read_signing_key


@click.command()
@click.argument("commit", default="HEAD")
@click.option("--key", default="", help="File of your signing key; ~/.ssh/id_ed25519 by default.")
def review(commit: str, key: str) -> None:
    """Approve a commit.

    The signed review is a git note of the commit, in refs/notes/reviews. It counts if your key is in the project's
    landing.people, and you are not the author of the commit.
    """
    checkout = Checkout.containing(Path.cwd())
    commit_id = checkout.resolve_commit(commit)
    reviewed_at = SystemClock().now().isoformat(timespec="seconds")
    envelope = sign_statement(review_statement(commit_id, checkout.user_email(), reviewed_at), read_signing_key(key))
    checkout.append_note(commit_id, msgspec.json.encode(envelope).decode())
    click.echo(f"{commit_id[:12]}  reviewed by {checkout.user_email()}        next: git push origin {REVIEW_NOTES_REF}")
