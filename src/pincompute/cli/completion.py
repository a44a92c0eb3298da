"""`pin completion`: the setup of shell completion, for commands, options and the names of workloads."""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

SHELL_SETUP = {
    "bash": 'eval "$(pin completion bash)"',
    "zsh": 'eval "$(pin completion zsh)"',
    "fish": "pin completion fish | source",
}
"""The line for each shell's startup file."""
KUBECTL_NO_FILES, KUBECTL_ALLOW_FILES = ":4", ":0"
"""Directives of cobra, kubectl's parser: whether it may complete file names as well."""
COMPLETE_VARIABLE = "_PIN_COMPLETE"
"""Set by the shell's completion function, as click names it for `pin`."""


@click.command(epilog="Add to the startup file of your shell:\n\n" + "\n\n".join(SHELL_SETUP.values()))
@click.argument("shell", type=click.Choice(list(SHELL_SETUP)))
def completion(shell: str) -> None:
    """Print the setup of shell completion."""
    group = click.get_current_context().find_root().command
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    click.echo(shell_class(group, {}, "pin", COMPLETE_VARIABLE).source(), nl=False)


class KubectlComplete(ShellComplete):
    """Kubectl's protocol for plugins: words on the command line, the last incomplete; answers and a directive."""

    name = "kubectl"

    def get_completion_args(self) -> tuple[list[str], str]:
        *words, incomplete = sys.argv[1:] or [""]
        return words, incomplete

    def complete(self) -> str:
        items = self.get_completions(*self.get_completion_args())
        plain_items = [each for each in items if each.type == "plain"]
        directive = KUBECTL_ALLOW_FILES if len(plain_items) < len(items) else KUBECTL_NO_FILES
        return "\n".join([*map(self.format_completion, plain_items), directive])

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.value}\t{item.help}" if item.help else item.value


def complete_for_kubectl(group: click.Group) -> str:
    return KubectlComplete(group, {}, "pin", COMPLETE_VARIABLE).complete()
