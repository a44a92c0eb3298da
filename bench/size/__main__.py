"""Fills a cluster of 3,000 nodes and 120,000 pods, or a fraction of it, and times changes in it."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from fractions import Fraction

from bench.size.run import CHURN_MINUTES, FRACTIONS, run_fractions


def _fraction(text: str) -> Fraction:
    try:
        fraction = Fraction(text)
    except (ValueError, ZeroDivisionError):
        fraction = Fraction(0)
    if not 0 < fraction <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a fraction above 0, and 1 at most")
    return fraction


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.size",
        description=__doc__,
        epilog="example, in about three minutes: python -m bench.size 1/100 --minutes 1",
    )
    parser.add_argument(
        "fractions",
        nargs="*",
        type=_fraction,
        metavar="FRACTION",
        help=f"fractions of the size, one after the other (default: those of {', '.join(map(str, FRACTIONS))} for "
        "which this machine has memory)",
    )
    parser.add_argument("--minutes", type=float, default=CHURN_MINUTES, help="minutes of changes at each fraction")
    options = parser.parse_args(words)
    # A terminated run stops its platform, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for figure in run_fractions(options.fractions, options.minutes):
        print(figure.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
