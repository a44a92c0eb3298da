"""The parser around the command table: a command is imported to be run, and not before."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from pincompute import __version__
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Table = Mapping[str, tuple[str, str]]


class LazyGroup(click.Group):
    """A group that knows its commands' names and help, and imports one only to run it."""

    def __init__(self, commands: Table, processes: Table, overview: str) -> None:
        super().__init__("pin", context_settings={"help_option_names": ["-h", "--help"]})
        self._listed = commands
        self._table = {**commands, **processes}
        self._overview = overview
        self.params.append(_version_option())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        _loaded()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """By the table, without loading any of them."""
        # Only a shell asks.
        from click.shell_completion import CompletionItem

        begun = [(name, about) for name, (_, about) in self._listed.items() if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=about) for name, about in begun),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def get_help(self, ctx: click.Context) -> str:
        return self._overview.rstrip()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get("PIN_DEBUG"):
                raise
            click.echo(_told(error), err=True)
            sys.exit(1)


def _loaded() -> None:
    """What comes from here on may go again, and be collected, where `main` has put that off."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _version_option() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            click.echo(f"pin {__version__}")
            ctx.exit()

    return click.Option(["--version"], is_flag=True, expose_value=False, is_eager=True, callback=show)


def _told(error: Exception) -> str:
    if isinstance(error, Refused):
        return error.text()
    what = f"pin failed: {type(error).__name__}: {error}"
    return Problem(INTERNAL, what, next="the same with PIN_DEBUG=1 before it, and report it").text()
