"""Memory: what a process keeps for as long as it runs is not searched for garbage again and again."""

from __future__ import annotations

import gc

# The customary 700 is for programs that keep little. A view of 20,000 pods was searched so often that half of the time
# of its first sync went into it, and everything else stood still for half a second at once.
OFTEN, SELDOM, RARELY = 50_000, 20, 100


def keep_much() -> None:
    """To be called before much comes in."""
    gc.set_threshold(OFTEN, SELDOM, RARELY)


def keep_all() -> None:
    """What is there now stays: it is let go of as soon as nobody needs it, and never searched again."""
    gc.collect()
    gc.freeze()
