"""Runs the corpus, or classes of it, and saves the figures: `python -m bench.why [CLASS …]`."""

from __future__ import annotations

import argparse

from bench.why.page import write_page
from bench.why.run import HEALTHY, run_corpus, save


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.why", description=__doc__)
    parser.add_argument("classes", nargs="*", help=f"classes of faults, or {HEALTHY}; all by default")
    parser.add_argument("--only", action="append", default=[], help="one case; nothing is saved then")
    parser.add_argument("--on", default="", metavar="NAME", help="a running platform; one of its own by default")
    options = parser.parse_args()
    answers = run_corpus(options.classes, options.only, options.on)
    if not options.only:
        write_page(save(answers))


if __name__ == "__main__":
    main()
