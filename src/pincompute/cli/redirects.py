"""Suggests a command of `pin` for the words of kubectl, docker, Heroku and SkyPilot that it does not have."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from pincompute.base.problem import Problem
from pincompute.base.reasons import USAGE

SAME_ARGUMENTS = {
    "abort": "cancel",
    "attach": "shell",
    "describe": "show",
    "destroy": "delete",
    "diff": "plan",
    "exec": "shell",
    "explain": "why",
    "inspect": "show",
    "jobs": "get",
    "list": "get",
    "ls": "get",
    "queue": "get",
    "remove": "delete",
    "rm": "delete",
    "ssh": "shell",
    "tail": "logs",
    "undo": "rollback",
}
"""Commands that take the arguments of the guessed one."""
OTHER_ARGUMENTS = {
    "apply": "pin deploy FILE",
    "create": "pin deploy FILE",
    "debug": "pin why NAME",
    "launch": "pin deploy FILE",
    "releases": "pin show NAME",
    "rollout": "pin restart NAME, pin pause NAME, or: pin rollback NAME",
    "run": "pin deploy NAME --image IMAGE --port PORT",
    "set": "pin edit NAME",
    "start": "pin resume NAME, or: pin scale NAME 1",
    "stop": "pin scale NAME 0",
    "submit": "pin deploy FILE",
    "update": "pin edit NAME",
}
"""What to type for other guessed commands."""
UNSAFE_SUGGESTIONS = frozenset({"--yes", "--purge", "--break-glass", "--adopt"})
"""Options that skip a question or a check. A misspelt option must not lead to them."""


def unknown_command_problem(name: str, arguments: Sequence[str], commands: Collection[str]) -> Problem:
    if name in SAME_ARGUMENTS:
        next_ = shlex.join(["pin", SAME_ARGUMENTS[name], *arguments])
    elif name in OTHER_ARGUMENTS:
        next_ = OTHER_ARGUMENTS[name]
    else:
        close = get_close_matches(name, [*commands, *SAME_ARGUMENTS], n=1)
        # A misspelt guess leads to the command itself, too.
        found = SAME_ARGUMENTS.get(close[0], close[0]) if close else ""
        next_ = shlex.join(["pin", found, *arguments]) if found else "pin --help"
    return Problem(USAGE, f"no command '{name}'", next=next_)
