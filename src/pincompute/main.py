"""The command table: every command by name, loaded only when it is called. It decides nothing."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NamedTuple

import click


class Entry(NamedTuple):
    """Where a command lives, and the line that help shows without loading it."""

    target: str
    help: str


COMMANDS = {
    "up": Entry("pincompute.engine.commands:up", "Start a platform on this machine."),
    "status": Entry("pincompute.engine.commands:status", "Show every part of a platform."),
    "down": Entry("pincompute.engine.commands:down", "End a platform; --purge forgets it."),
    "kubectl": Entry("pincompute.engine.commands:kubectl", "Kubernetes' own command line, on a platform."),
    "image": Entry("pincompute.engine.image_commands:image", "Bring images in, and list them."),
    "deploy": Entry("pincompute.cli.deploy:deploy", "Run a workload and follow it to its address."),
    "plan": Entry("pincompute.cli.plan:plan", "Show what a file would become, without doing it."),
    "get": Entry("pincompute.cli.get:get", "List workloads."),
    "logs": Entry("pincompute.cli.logs:logs", "Show what a workload prints."),
    "delete": Entry("pincompute.cli.delete:delete", "End a workload and remove what it became."),
    "crds": Entry("pincompute.cli.crds:crds", "Print our kinds as Kubernetes knows them."),
    "config": Entry("pincompute.cli.config:config", "Show the settings and where each comes from."),
}

# Started by `pin up`, not typed by people: help does not list them.
PROCESSES = {
    "desk": Entry("pincompute.submission.process:desk", "Run the submission service."),
    "operator": Entry("pincompute.operator.process:operator", "Run the operator."),
    "agent": Entry("pincompute.agents.commands:agent", "Run one of the agents."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and help, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name) or PROCESSES.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

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


def _told(error: Exception) -> str:
    # Imported here: help and completion must not pay for it.
    from pincompute.base.problem import Problem, Refused
    from pincompute.base.reasons import INTERNAL

    if isinstance(error, Refused):
        return error.text()
    what = f"{type(error).__name__}: {error}"
    return Problem(INTERNAL, f"pin failed: {what}", next="the same with PIN_DEBUG=1 before it, and report it").text()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pincompute", prog_name="pin")
def pin() -> None:
    """One short file, and it runs on Kubernetes with everything around it already there."""
