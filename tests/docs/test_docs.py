"""Whatever can go stale in the documents: links, commands, the layers, what is written from the code."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
from pathlib import Path

import pytest
import writing

from pincompute.main import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pincompute"


def tracked(pattern: str) -> list[Path]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in found.splitlines() if (ROOT / line).is_file()]


PAGES = tracked("*.md")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("file", writing.written(), ids=name)
def test_what_is_written_from_the_code_is_up_to_date(file: Path) -> None:
    assert file.read_text() == writing.written()[file], "next: make docs"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    for command in re.findall(r"(?:^\$ |`)pin ([a-z]+(?:-[a-z]+)*)\b", text, re.MULTILINE):
        assert command in COMMANDS or command in {"agent", "desk", "operator"}, f"{name(page)}: pin {command}"
    for target in re.findall(r"(?:^|`)make ([a-z]+)\b", text, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"{name(page)}: make {target}"


def test_the_layers_of_the_page_are_those_of_the_linter_in_the_same_order() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    linted = re.findall(r"pincompute\.(\w+)", contracts["importlinter:contract:layers"]["layers"])
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == linted


def test_each_layer_is_described_by_its_own_first_sentence() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    for layer, sentence in re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE):
        module = PACKAGE / layer / "__init__.py" if (PACKAGE / layer).is_dir() else PACKAGE / f"{layer}.py"
        said = ast.get_docstring(ast.parse(module.read_text())) or ""
        assert said.startswith(sentence.removesuffix(".")), f"{layer}: {said}"


@pytest.mark.parametrize("module", tracked("src/**/*.py"), ids=name)
def test_every_module_begins_with_a_sentence_and_stays_small(module: Path) -> None:
    text = module.read_text()
    assert ast.get_docstring(ast.parse(text)), f"{name(module)} does not say what it is"
    # The reasons are one list, and as long as there are reasons.
    if module.name != "reasons.py":
        assert len(text.splitlines()) <= 400, f"{name(module)}: look for the second idea hiding inside"


def test_every_name_that_goes_into_a_cluster_is_spelled_in_one_place() -> None:
    for module in tracked("src/**/*.py"):
        if module.name != "names.py":
            assert "pinterest.com/" not in module.read_text(), f"{name(module)}: use api/names.py"


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [each.name[:4] for each in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
