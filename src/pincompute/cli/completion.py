"""`pin completion`: what a shell needs to complete commands, options and the names of workloads."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from pincompute.cli.port import Port
from pincompute.cli.target import Target, connect
from pincompute.cli.word import plain

SHELLS = {
    "bash": 'eval "$(pin completion bash)"',
    "zsh": 'eval "$(pin completion zsh)"',
    "fish": "pin completion fish | source",
}
"""And what is written into the file that each begins with."""
PATIENCE = 2.0
"""Seconds for which somebody who pressed a key waits for a platform."""
NO_FILES, FILES_TOO = ":4", ":0"
"""To kubectl: what was offered is all there is, or a file is another way to say it."""
VARIABLE = "_PIN_COMPLETE"
"""As click calls it, by the name of the program."""


@click.command(epilog="Write into what your shell begins with:\n\n" + "\n\n".join(SHELLS.values()))
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print what a shell needs to complete what you type."""
    group = click.get_current_context().find_root().command
    known = get_completion_class(shell)
    assert known is not None
    click.echo(known(group, {}, "pin", VARIABLE).source(), nl=False)


def names(target: Target, incomplete: str) -> list[CompletionItem[str]]:
    """Of the workloads that there are. Where that cannot be known there are none: nobody asked to be told why."""

    async def there(platform: Port) -> dict[str, str]:
        return {each.name: plain(each.kind) for each in await platform.all(target.project)}

    return _offered(target, incomplete, there)


def projects(target: Target, incomplete: str) -> list[CompletionItem[str]]:
    """The same of the projects that somebody may look at."""

    async def there(platform: Port) -> dict[str, str]:
        return {each.project: each.owner for each in await platform.projects()}

    return _offered(target, incomplete, there)


def _offered(
    target: Target, incomplete: str, there: Callable[[Port], Awaitable[dict[str, str]]]
) -> list[CompletionItem[str]]:
    async def asked() -> dict[str, str]:
        async with connect(target) as platform, asyncio.timeout(PATIENCE):
            return await there(platform)

    try:
        found = asyncio.run(asked())
    except Exception:
        return []
    return [CompletionItem(name, help=word) for name, word in sorted(found.items()) if name.startswith(incomplete)]


class ForKubectl(ShellComplete):
    """As kubectl asks a plugin: the words so far, of which the last may have begun; and as it is answered."""

    name = "kubectl"

    def get_completion_args(self) -> tuple[list[str], str]:
        *words, incomplete = sys.argv[1:] or [""]
        return words, incomplete

    def complete(self) -> str:
        offered = self.get_completions(*self.get_completion_args())
        plain_ones = [each for each in offered if each.type == "plain"]
        asks_for_files = len(plain_ones) < len(offered)
        return "\n".join([*map(self.format_completion, plain_ones), FILES_TOO if asks_for_files else NO_FILES])

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.value}\t{item.help}" if item.help else item.value


def for_kubectl(group: click.Group) -> str:
    return ForKubectl(group, {}, "pin", VARIABLE).complete()
