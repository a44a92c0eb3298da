"""Compares with peers: everything, or some ids of `docs/performance.md`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from bench.peers.run import CONTENDERS_OF_ID, PAIRS, Size, run


def parse_size(words: Sequence[str]) -> Size:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description=__doc__,
        epilog="example, in about a minute: python -m bench.peers P5 --pairs 1 --size 0.1",
    )
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help=f"comparisons: {', '.join(CONTENDERS_OF_ID)}; all by default"
    )
    parser.add_argument("--pairs", type=_positive, default=PAIRS, help="rounds with each contender (default: 5)")
    parser.add_argument("--size", type=_fraction, default=1.0, help="fraction of the workloads and pods (default: 1)")
    options = parser.parse_args(words)
    if unknown := sorted(set(options.ids) - set(CONTENDERS_OF_ID)):
        parser.error(f"no such comparison: {', '.join(unknown)}; comparisons: {', '.join(CONTENDERS_OF_ID)}")
    return Size(tuple(options.ids) or tuple(CONTENDERS_OF_ID), options.pairs, options.size)


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of at least 1")
    return int(text)


def _fraction(text: str) -> float:
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a fraction above 0, and 1 at most")
    return fraction


def main(words: Sequence[str]) -> int:
    # A terminated run stops its servers and contenders, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    figures = run(parse_size(words))
    for figure in figures:
        print(figure.line(), flush=True)
    return 0 if all(each.passes for each in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
