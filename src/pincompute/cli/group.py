"""The click group of the command table: a command's module is imported only to run that command."""

from __future__ import annotations

import errno
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
from pincompute.cli.colours import forced_colour
from pincompute.cli.exit_codes import INTERRUPTED, exit_code

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

CommandTable = Mapping[str, tuple[str, str]]
"""Location and one-line help of each command, by name."""


COMMANDS_ON_WORKLOADS = frozenset(
    {
        "break",
        "cancel",
        "delete",
        "edit",
        "events",
        "get",
        "heal",
        "logs",
        "pause",
        "port-forward",
        "provenance",
        "rerun",
        "restart",
        "resume",
        "rollback",
        "scale",
        "shell",
        "show",
        "wait",
        "why",
    }
)
"""Commands whose first argument is a workload."""


_HELP_OPTIONS = frozenset({"-h", "--help"})


class LazyGroup(click.Group):
    """Knows the names and help of its commands, and imports a command only to run it."""

    def __init__(self, commands: CommandTable, processes: CommandTable, overview: str) -> None:
        settings = {"help_option_names": sorted(_HELP_OPTIONS)}
        super().__init__("pin", context_settings=settings, invoke_without_command=True, callback=_without_words)
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
        _enable_gc()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, *arguments = args
        if name not in self._table and not name.startswith("-") and not ctx.resilient_parsing:
            from pincompute.cli.redirects import unknown_command_problem

            raise Refused(unknown_command_problem(name, arguments, self._listed))
        if name in COMMANDS_ON_WORKLOADS and len(arguments) > 1:
            from pincompute.cli.workload_ref import join_kind_and_name

            arguments = join_kind_and_name(arguments)
        _, command, arguments = super().resolve_command(ctx, [name, *arguments])
        if command and not _HELP_OPTIONS.isdisjoint(arguments):
            from pincompute.cli.examples import format_examples

            command.epilog = command.epilog or format_examples(name)
        return name, command, arguments

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete from the table, without importing any command."""
        from click.shell_completion import CompletionItem

        commands = [(name, help_) for name, (_, help_) in self._listed.items() if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=help_) for name, help_ in commands),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def get_help(self, ctx: click.Context) -> str:
        return self._overview.rstrip()

    def invoke(self, ctx: click.Context) -> Any:
        ctx.color = forced_colour()
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            from pincompute.cli.redirects import UNSAFE_SUGGESTIONS

            safe = [each for each in error.possibilities or () if each not in UNSAFE_SUGGESTIONS]
            raise click.NoSuchOption(error.option_name, possibilities=safe, ctx=error.ctx) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            # Ctrl-C is the usual end of `--watch` and `--follow`.
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output has gone, as in `pin logs web | head`. Click ends the process silently.
            raise
        except Exception as error:
            if isinstance(error, ExceptionGroup) and error.subgroup(BrokenPipeError):
                # The same, in a task of several.
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None
            if os.environ.get("PIN_DEBUG"):
                raise
            click.echo(_error_text(error), err=True)
            sys.exit(exit_code(error))


def _without_words() -> None:
    """Show the next steps, unless a command follows."""
    if click.get_current_context().invoked_subcommand is None:
        from pincompute.cli.next_steps import show_next_steps

        show_next_steps()


def _enable_gc() -> None:
    """Enable the collector, which `main` disables at start; all that is loaded so far is never collected."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _version_option() -> click.Option:
    def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            click.echo(f"pin {__version__}")
            ctx.exit()

    return click.Option(["--version"], is_flag=True, expose_value=False, is_eager=True, callback=print_version)


def _error_text(error: Exception) -> str:
    if isinstance(error, Refused):
        # It may quote the last line of a tenant's program.
        from pincompute.base.printable import printable

        return printable(error.text())
    what = f"pin failed: {type(error).__name__}: {error}"
    return Problem(INTERNAL, what, next="run it again with PIN_DEBUG=1, and report the traceback").text()
