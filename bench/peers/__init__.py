"""Comparison with peers on the same work: kopf, controller-runtime, client-go, `kubernetes` and lightkube."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure


def figures() -> Iterator[Figure]:
    """The whole comparison, which also writes `docs/performance.md`."""
    from bench.peers.run import Size, run

    yield from run(Size())
