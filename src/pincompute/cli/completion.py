"""`pin completion`: what a shell needs to complete commands, options and the names of workloads."""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

SHELLS = {
    "bash": 'eval "$(pin completion bash)"',
    "zsh": 'eval "$(pin completion zsh)"',
    "fish": "pin completion fish | source",
}
"""And what is written into the file that each begins with."""
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
