"""A cluster of Pinterest's size, or a fraction of it: 3,000 simulated nodes and 120,000 pods of mixed kinds."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure


def figures() -> Iterator[Figure]:
    """The fractions that this machine has memory for, which also write `docs/scale.md`."""
    from bench.size.run import run_fractions

    yield from run_fractions()
