"""Documents are up to date: links, commands, layers and generated files."""

from __future__ import annotations

import ast
import configparser
import importlib
import re
import subprocess
from pathlib import Path

import generate_docs
import pytest

from pincompute.cli.redirects import SAME_ARGUMENTS
from pincompute.main import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pincompute"


def tracked(pattern: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in found.splitlines() if (ROOT / line).is_file()]


PAGES = tracked("*.md")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_generated_files_are_up_to_date() -> None:
    stale = [name(file) for file, text in generate_docs.generated_files().items() if file.read_text() != text]
    assert not stale, "next: make docs"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_mentioned_commands_exist(page: Path) -> None:
    text = page.read_text()
    for command in re.findall(r"(?:^\$ |`)pin ([a-z]+(?:-[a-z]+)*)\b", text, re.MULTILINE):
        known = {*COMMANDS, *SAME_ARGUMENTS, "agent", "desk", "insight", "operator"}
        assert command in known, f"{name(page)}: pin {command}"
    for target in re.findall(r"(?:^|`)make ([a-z]+)\b", text, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"{name(page)}: make {target}"


def test_layers_match_import_linter() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = re.findall(r"pincompute\.(\w+)", contracts["importlinter:contract:layers"]["layers"])
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == layers


def test_layer_description_matches_docstring() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    for layer, sentence in re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE):
        module = PACKAGE / layer / "__init__.py" if (PACKAGE / layer).is_dir() else PACKAGE / f"{layer}.py"
        docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
        assert docstring.startswith(sentence.removesuffix(".")), f"{layer}: {docstring}"


@pytest.mark.parametrize("module", tracked("src/**/*.py"), ids=name)
def test_module_has_docstring_and_is_short(module: Path) -> None:
    text = module.read_text()
    assert ast.get_docstring(ast.parse(text)), f"{name(module)} has no docstring"
    assert len(text.splitlines()) <= 400, f"{name(module)}: split the module"


def test_names_in_clusters_are_defined_in_one_file() -> None:
    for module in tracked("src/**/*.py"):
        if module.name != "names.py":
            assert "pinterest.com/" not in module.read_text(), f"{name(module)}: use api/names.py"


def test_decisions_are_numbered_consecutively() -> None:
    numbers = [each.name[:4] for each in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]


def test_python_in_shell_scripts_imports_what_exists() -> None:
    texts = [file.read_text() for file in (ROOT / "scripts").iterdir() if file.is_file() and file.suffix == ""]
    blocks = [
        block for text in texts for block in re.findall(r"<<'PYTHON'\n(.*?)^PYTHON$", text, re.DOTALL | re.MULTILINE)
    ]
    assert blocks
    statements = [each for block in blocks for each in ast.walk(ast.parse(block)) if isinstance(each, ast.ImportFrom)]
    for each in statements:
        imported = importlib.import_module(each.module or "")
        assert [alias.name for alias in each.names if not hasattr(imported, alias.name)] == [], each.module
