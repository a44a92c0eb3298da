"""Writes a man page for each command, from its help and its examples, to build/man. `make man` runs it."""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from pincompute import __version__
from pincompute.cli.examples import EXAMPLES
from pincompute.main import ABOUT, COMMAND_GROUPS, COMMANDS, command_group

ROOT = Path(__file__).parents[1]


def man_pages() -> dict[str, str]:
    """Content by file name: `pin.1`, and `pin-deploy.1` for each command; subcommands are in the page of theirs."""
    group = command_group()
    context = click.Context(group, info_name="pin")
    pages = {"pin.1": "\n".join(_overview()) + "\n"}
    for name in COMMANDS:
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(name)
        pages[f"pin-{name}.1"] = "\n".join(_page(name, command, context)) + "\n"
    return pages


def _overview() -> Iterator[str]:
    yield _title("pin")
    yield from (".SH NAME", f"pin \\- {_escape(ABOUT)}", ".SH SYNOPSIS", ".B pin", ".I COMMAND", "[ARGS]...")
    yield from (".SH DESCRIPTION", "Without words it shows the next command to type.", ".SH COMMANDS")
    for title, commands in COMMAND_GROUPS.items():
        yield f".SS {_escape(title)}"
        for name, (_, help_) in commands.items():
            yield from (".TP", f".BR pin\\-{_escape(name)} (1)", _escape(help_))


def _page(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    yield _title(f"pin-{name}")
    yield from (".SH NAME", f"pin\\-{_escape(name)} \\- {_escape(COMMANDS[name][1])}", ".SH SYNOPSIS")
    own = click.Context(command, info_name=name, parent=context)
    yield from (f".B pin {_escape(name)}", _escape(" ".join(command.collect_usage_pieces(own))))
    yield ".SH DESCRIPTION"
    yield from _paragraphs(command)
    yield from _options(own, ".SH OPTIONS")
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for sub_name in command.list_commands(own):
            sub_command = command.get_command(own, sub_name)
            if sub_command and not sub_command.hidden:
                yield from _subcommand(sub_name, sub_command, own)
    yield ".SH EXAMPLES"
    for line, meaning in EXAMPLES[name]:
        yield from (".TP", f".B {_escape(line)}", _escape(meaning))
    yield from (".SH SEE ALSO", ".BR pin (1)")


def _subcommand(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    own = click.Context(command, info_name=name, parent=parent)
    yield f".SS {_escape(f'{own.command_path} ' + ' '.join(command.collect_usage_pieces(own)))}"
    yield from _paragraphs(command)
    yield from _options(own, "")


def _paragraphs(command: click.Command) -> Iterator[str]:
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    for paragraph in re.split(r"\n\s*\n", text):
        yield from (".PP", _escape(" ".join(paragraph.replace("\b", "").split())))


def _options(context: click.Context, heading: str) -> Iterator[str]:
    records = [each.get_help_record(context) for each in context.command.get_params(context)]
    found = [each for each in records if each and each[1]]
    if found and heading:
        yield heading
    for names, help_ in found:
        yield from (".TP", f".B {_escape(names)}", _escape(" ".join(help_.split())))


def _title(name: str) -> str:
    return f'.TH "{_escape(name.upper())}" "1" "" "PinCompute {__version__}" "PinCompute"'


def _escape(text: str) -> str:
    """Text for roff: a backslash or a dash is an instruction, as is a dot or an apostrophe at the start of a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main() -> None:
    folder = ROOT / "build" / "man"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in man_pages().items():
        (folder / name).write_text(text)
    print(f"{len(list(folder.iterdir()))} pages in {folder.relative_to(ROOT)}: man -l build/man/pin-deploy.1")


if __name__ == "__main__":
    main()
