"""The language of the code: figures of its prose, and the terms of the glossary."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from language_figures import FOLDERS, ROOT, language_figures

GLOSSARY = ROOT / "docs" / "glossary.md"
OWN_TEXT = (
    "src",
    "simulation",
    "bench",
    "scripts",
    "tests",
    "docs",
    "examples",
    "deploy",
    "README.md",
    "CONTRIBUTING.md",
)
EXEMPT = (
    "docs/glossary.md",
    "docs/decisions/",
    "tests/docs/test_language.py",
    "scripts/language_figures.py",
    "src/pincompute/planning/faults/catalogue.py",
)


class Term(NamedTuple):
    name: str
    former: tuple[str, ...]
    place: Path


def terms() -> list[Term]:
    """The rows of the glossary: term, meaning, former words, place in the code."""
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|.+?\|([^|]*)\| `(.+?)` \|$", GLOSSARY.read_text(), re.MULTILINE)
    return [
        Term(name, tuple(re.findall(r"\*(.+?)\*", former)), ROOT / "src" / "pincompute" / place)
        for name, former, place in rows
    ]


def own_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *OWN_TEXT],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = [ROOT / line for line in listed.stdout.splitlines() if not line.startswith(EXEMPT)]
    return [file for file in files if file.is_file() and file.suffix in {".py", ".md", ".yaml", ".txt", ".sh", ""}]


@pytest.mark.parametrize("folder", FOLDERS)
def test_prose_uses_few_indefinite_pronouns(folder: str) -> None:
    figures = language_figures(ROOT / folder)
    assert figures.pronouns_per_1000_words < 1, str(figures)
    assert figures.begin_with_what <= 0.01, str(figures)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_are_unique_enough_to_search_for(folder: str) -> None:
    figures = language_figures(ROOT / folder)
    assert len(figures.shared_names) < 5, str(figures)


def test_glossary_names_places_that_exist() -> None:
    found = terms()
    assert len(found) > 60
    assert not [term for term in found if not term.place.exists()]


def test_former_words_occur_nowhere() -> None:
    former = {word: term.name for term in terms() for word in term.former}
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, former)) + r")\b", re.IGNORECASE)
    wrong = [
        f"{file.relative_to(ROOT)}:{number}: '{word}' is now '{former[word.lower()]}'"
        for file in own_files()
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1)
        for word in pattern.findall(line)
        if "former" not in f"{file.name} {line}".lower()
    ]
    assert not wrong, "\n".join(wrong[:50])
