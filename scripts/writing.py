"""What is written from the code: kinds, reasons, API, CRDs, changelog. `make docs` runs it, a test compares."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.manifests import structural
from pincompute.api.noun import Noun
from pincompute.api.whoami import SignIn
from pincompute.base.reasons import REASONS
from pincompute.engine.installation.contents import EVERYTHING, Words, contents
from pincompute.kube.resource import CRDS
from pincompute.submission.openapi import described
from pincompute.submission.server import ways

ROOT = Path(__file__).parents[1]
SECTIONS = ("added", "changed", "fixed")


def written() -> dict[Path, str]:
    """Every file that is not written by hand, whole."""
    return {
        ROOT / "docs" / "reasons.md": _reasons(),
        ROOT / "docs" / "openapi.json": _openapi(),
        ROOT / "deploy" / "crds.yaml": yaml.safe_dump_all(_kinds_of_ours(), sort_keys=False, explicit_start=True),
        ROOT / "deploy" / "pincompute.yaml": _platform(),
        ROOT / "deploy" / "support.yaml": _support(),
        ROOT / "deploy" / "desk.yaml": _desk(),
        ROOT / "CHANGELOG.md": _changelog(),
        ROOT / "docs" / "kinds" / "README.md": _kinds(),
        **{ROOT / "docs" / "kinds" / f"{name}.md": _kind(kind) for name, kind in KINDS.items()},
    }


@cache
def _openapi() -> str:
    """As a desk says it that nobody signs in to."""
    nobody: Any = None
    found = described(ways(nobody, nobody, SignIn()), SignIn())
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _kinds_of_ours() -> list[dict[str, Any]]:
    """As `pin install` marks them."""
    return [each for each in contents(Words()) if each["kind"] == CRDS.kind]


def _platform() -> str:
    """What `pin install` applies, but for the kinds, which have a file of their own, and what runtimes need."""
    head = "# Written by `make docs`: what `pin install` applies beside crds.yaml. The image is yours to name.\n"
    objects = contents(Words(support=False))
    return head + _dumped([each for each in objects if each["kind"] != CRDS.kind])


def _support() -> str:
    """Where a cluster gives pods no certificates, it is left out."""
    head = "# Written by `make docs`: what the parts of a runtime need, on a cluster that gives pods certificates.\n"
    without = contents(Words(support=False))
    return head + _dumped([each for each in contents(Words()) if each not in without])


def _desk() -> str:
    """Where nobody needs one, it is left out."""
    head = "# Written by `make docs`: the desk. Its address, its words and its certificate are yours to say.\n"
    without = contents(Words())
    return head + _dumped([each for each in contents(EVERYTHING) if each not in without])


def _dumped(objects: list[dict[str, Any]]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False, explicit_start=True, width=120)


def _kinds() -> str:
    """Which kinds there are."""
    lines = ["# Kinds", "", "| kind | short | is |", "|---|---|---|"]
    for name, kind in KINDS.items():
        short = ", ".join(f"`{each}`" for each in kind.SHORT_NAMES)
        lines.append(f"| [{name}]({name}.md) | {short} | {(kind.__doc__ or '').strip()} |")
    return "\n".join(lines) + "\n"


def _kind(kind: type[Noun]) -> str:
    """Its example, and every field that a person may write."""
    lines = [f"# {kind.__name__}", "", (kind.__doc__ or "").strip(), ""]
    for example in sorted((ROOT / "examples").rglob("*.yaml")):
        if f"kind: {kind.__name__}\n" in example.read_text():
            name = example.relative_to(ROOT)
            lines.append(f"- [{name}](../../{name})")
    lines += ["", "| field of `spec` | is | may be |", "|---|---|---|"]
    lines += _fields(structural(kind.spec_type()), "")
    return "\n".join(lines) + "\n"


def _fields(schema: dict[str, Any], above: str) -> list[str]:
    lines: list[str] = []
    for name, each in schema.get("properties", {}).items():
        path = f"{above}{name}"
        must = " **Must be there.**" if name in schema.get("required", ()) else ""
        lines.append(f"| `{path}` | {each.get('description', '').replace('|', '/')}{must} | {_type(each)} |")
        # A pod template is Kubernetes' own, and described there.
        if name != "template":
            lines += _fields(each, f"{path}.")
            lines += _fields(each.get("items", {}), f"{path}[].")
            inner = each.get("additionalProperties")
            lines += _fields(inner if isinstance(inner, dict) else {}, f"{path}.NAME.")
    return lines


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(str(each) for each in schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return "number or text"
    lower, upper = schema.get("minimum"), schema.get("maximum")
    bounds = f", {lower} to {upper:,}" if upper is not None else ""
    names = {"object": "fields", "array": "list", "string": "text", "integer": "number", "boolean": "true or false"}
    return names.get(str(schema.get("type")), "anything") + bounds


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
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
