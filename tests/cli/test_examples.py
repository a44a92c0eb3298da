"""The examples in the help of each command are accepted by the command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pincompute.cli.examples import EXAMPLES
from pincompute.cli.project import ShowByDefault
from pincompute.main import COMMANDS, command_group

LINES = [line for examples in EXAMPLES.values() for line, _ in examples if not line.startswith(("eval", "pin --"))]


def test_each_command_has_two_examples() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys()
    assert [command for command, examples in EXAMPLES.items() if len(examples) < 2] == []


@pytest.mark.parametrize("line", LINES)
def test_command_parses_its_example(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").touch()
    words = shlex.split(re.split(r" [|>] ", line)[0])
    name, *arguments = words[words.index("pin") + 1 :]
    command = command_group().get_command(click.Context(command_group()), name)
    assert command is not None, line
    while isinstance(command, click.Group):
        arguments = command.with_default(arguments) if isinstance(command, ShowByDefault) else arguments
        name, *arguments = arguments
        command = command.commands[name]
    # Parses and converts every value, and runs nothing.
    command.make_context(name, arguments)


def test_help_ends_with_the_examples() -> None:
    shown = CliRunner().invoke(command_group(), ["scale", "--help"]).output
    assert shown.endswith(
        "  Examples:\n    pin scale web 3\n        three replicas\n"
        "    pin scale resize 20\n        20 tasks at a time\n"
    )
