"""Prints how plain the prose of the Python code is: `python scripts/language_figures.py [FOLDER …]`.

Three figures, each with the bar that a test holds: indefinite pronouns for persons in 1,000 words of docstrings and
comments, docstrings that begin with "What", and names of functions or classes that are defined in five modules or more.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = ("src/pincompute", "simulation", "bench", "scripts", "tests")

_PRONOUN = re.compile(r"\b(who|whoever|whom|whose|somebody|nobody|everybody|someone|anybody|whatever)\b", re.IGNORECASE)
_MIN_MODULES = 5
_PLAIN_VERBS = """
    plan main run text command status start stop read write setup load find get list create delete apply render name
    kind key close open parse build order upgrade downgrade register now report figures
"""
_PROTOCOL_METHODS = """
    list_summaries get_workload describe explain watch follow logs exec port_forward fleet list_pods change_roll
    follow_roll submit submit_set deploy plan_build whoami get_project list_projects provenance change authenticate
    route_table send lines field_errors sleep monotonic
"""
"""Methods of a protocol or base class with several implementations, and commands or endpoints of the same name."""
_INTERFACE_NAMES = frozenset((_PLAIN_VERBS + _PROTOCOL_METHODS).split())


class Figures(NamedTuple):
    pronouns_per_1000_words: float
    begin_with_what: float
    """A share of all docstrings and comments."""
    shared_names: dict[str, int]
    """The names, and in how many modules each is defined."""

    def __str__(self) -> str:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(self.shared_names.items()))
        return (
            f"{self.pronouns_per_1000_words:.1f} pronouns in 1,000 words; {self.begin_with_what:.0%} begin with 'What';"
            f" {len(self.shared_names)} names in {_MIN_MODULES} modules or more{': ' if names else ''}{names}"
        )


def language_figures(folder: Path) -> Figures:
    prose: list[str] = []
    modules: dict[str, set[Path]] = defaultdict(set)
    for file in sorted(folder.rglob("*.py")):
        source = file.read_text()
        tree = ast.parse(source)
        prose += dict.fromkeys([*_docstrings(tree), *_comments(source)])
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                modules[node.name].add(file)
    words = sum(len(re.findall(r"\w+", text)) for text in prose)
    pronouns = sum(len(_PRONOUN.findall(text)) for text in prose)
    what = sum(text.lower().startswith("what ") for text in prose)
    shared = {name: len(files) for name, files in modules.items() if len(files) >= _MIN_MODULES and _is_own(name)}
    return Figures(1000 * pronouns / max(1, words), what / max(1, len(prose)), shared)


def _is_own(name: str) -> bool:
    return not name.startswith("__") and name.lstrip("_") not in _INTERFACE_NAMES


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Docstrings, and the strings below attributes and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value.strip()


def _comments(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


if __name__ == "__main__":
    for name in sys.argv[1:] or FOLDERS:
        print(f"{name}: {language_figures(ROOT / name)}")
