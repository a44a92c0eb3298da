"""What is written from the code: the reasons' pages, the CRDs, the changelog. `make docs` runs it, a test compares."""

from __future__ import annotations

from pathlib import Path

import yaml

from pincompute.api.manifests import crds
from pincompute.base.reasons import REASONS

ROOT = Path(__file__).parents[1]
SECTIONS = ("added", "changed", "fixed")


def written() -> dict[Path, str]:
    """Every file that is not written by hand, whole."""
    return {
        ROOT / "docs" / "reasons.md": _reasons(),
        ROOT / "deploy" / "crds.yaml": yaml.safe_dump_all(crds(), sort_keys=False, explicit_start=True),
        ROOT / "CHANGELOG.md": _changelog(),
    }


def _reasons() -> str:
    lines = [
        "# Reasons",
        "",
        "Every code that conditions, errors and messages use: what it means, who acts, and how it is mended.",
    ]
    for code in sorted(REASONS):
        reason = REASONS[code]
        lines += ["", f"## {code}", "", reason.means, "", f"Who acts: {reason.who}. {reason.mend}"]
    return "\n".join(lines) + "\n"


def _changelog() -> str:
    lines = ["# Changelog", "", "## To come"]
    for section in SECTIONS:
        changes = [file.read_text().strip() for file in sorted((ROOT / "changes").glob(f"{section}-*.md"))]
        if changes:
            lines += ["", f"### {section.capitalize()}", "", *(f"- {change}" for change in changes)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for file, text in written().items():
        file.write_text(text)
