"""Man pages have every command, option and example, and are valid roff."""

from __future__ import annotations

import shutil
import subprocess

import click
from man_pages import man_pages

from pincompute.cli.examples import EXAMPLES
from pincompute.main import COMMANDS, command_group

PAGES = man_pages()
MACROS = {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".BR", ".I"}


def test_each_command_has_a_page() -> None:
    assert PAGES.keys() == {"pin.1", *(f"pin-{name}.1" for name in COMMANDS)}
    listed = PAGES["pin.1"].replace("\\-", "-")
    assert [name for name in COMMANDS if f".BR pin-{name} (1)" not in listed] == []


def test_page_has_all_options_and_examples() -> None:
    group = command_group()
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        text = PAGES[f"pin-{name}.1"].replace("\\-", "-").replace("\\e", "\\")
        options = [option for each in command.params if isinstance(each, click.Option) for option in each.opts]
        assert [each for each in (*options, *(line for line, _ in EXAMPLES[name])) if each not in text] == [], name


def test_subcommands_are_in_the_page_of_their_command() -> None:
    assert ".SS pin runtime roll [OPTIONS] NUMBER" in PAGES["pin-runtime.1"]
    assert "\\-\\-break\\-holds" in PAGES["pin-runtime.1"]


def test_only_macros_start_with_a_dot() -> None:
    lines = [line for text in PAGES.values() for line in text.splitlines()]
    assert {line.split()[0] for line in lines if line.startswith(".")} <= MACROS
    assert not [line for line in lines if line.startswith("'")]


def test_groff_accepts_the_pages() -> None:
    """Where the machine has groff; the structure is tested above."""
    for text in PAGES.values() if shutil.which("groff") else ():
        command = ["groff", "-man", "-ww", "-z", "-Kutf8"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), text
