"""Prints the line coverage of each package from `build/coverage.json`, which `make test` writes with its unit tests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/pincompute")


def main() -> None:
    covered: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for file, found in json.loads((ROOT / "build" / "coverage.json").read_text())["files"].items():
        package = Path(file).relative_to(SOURCE).parts[0].removesuffix(".py")
        covered[package] += len(found["executed_lines"])
        total[package] += len(found["executed_lines"]) + len(found["missing_lines"])
    for package in sorted(total):
        print(f"{package:<12} {covered[package] / max(1, total[package]):4.0%} of {total[package]:,} lines")
    print(f"{'all':<12} {covered.total() / total.total():4.0%} of {total.total():,} lines, by unit tests alone")


if __name__ == "__main__":
    main()
