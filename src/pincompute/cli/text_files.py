"""Reads the files that a command is given, and standard input for `-`. Loads no YAML parser."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import click

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE

STDIN = Path("-")
_MAX_STDIN_BYTES = (256 << 20) + 1
"""One byte more than an exported namespace may have, so that the parser refuses the rest."""


file_option = click.option("--filename", "-f", "files", multiple=True, help="A file, folder or -, as with kubectl.")
tasks_from_option = click.option(
    "--tasks-from", metavar="LIST", help="Tasks of a job set: one for each line of the file LIST, or of -."
)


def require_files(arguments: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
    """Return what was given as arguments and by -f; refuse where there is nothing."""
    if not arguments + options:
        raise click.UsageError("Missing argument 'FILES...'.")
    return arguments + options


def read_text_file(file: Path, hint: str = "") -> str:
    """Refused with a problem that has `hint` as the next command if there is no such file."""
    try:
        return _read_stdin() if file == STDIN else file.read_text()
    except FileNotFoundError:
        raise Refused(Problem(USAGE, f"no such file: '{file}'", next=hint)) from None
    except UnicodeDecodeError:
        raise Refused(Problem(USAGE, f"not a text file: '{file}'")) from None
    except OSError as error:
        raise Refused(Problem(USAGE, f"'{file}' cannot be read: {error.strerror or error}")) from error


@cache
def _read_stdin() -> str:
    """Read once: a command looks at a file more than once, and a pipe has its content only once."""
    return sys.stdin.buffer.read(_MAX_STDIN_BYTES).decode()
