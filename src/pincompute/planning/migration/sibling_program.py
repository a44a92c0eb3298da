"""The program of sibling Jobs, written once: a shell reads the values of a task from its item, and starts the program.

A pod of an indexed Job has no variable with its item, so that only the file `item` can carry it. Values that are the
numbers of the tasks need no shell: Kubernetes inserts `$(PIN_TASK)`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import chain, count
from typing import Any, NamedTuple, NoReturn

import msgspec

from pincompute.api.job_set import ITEM_FILE
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object
from pincompute.planning.migration.short_form import is_platform_variable

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "ksh", "zsh"})
_TASK_PATH = "/etc/task"
_NUMBER = "$(PIN_TASK)"
_PROGRAM_FIELDS = ("command", "args", "env")
_SEPARATORS = (" ", ",", "|", ";")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELL_VARIABLES = frozenset(
    {"BASHOPTS", "EUID", "GROUPS", "IFS", "LINENO", "OLDPWD", "OPTIND", "PPID", "PWD", "RANDOM", "SECONDS", "UID", "_"}
)
"""Variables that a shell sets itself or does not allow to be set."""
_BETWEEN_WORDS = re.compile(r"([\s/=,]+)")
_NAME_END = re.compile(r"[A-Za-z0-9]*\Z")
_OPEN_REFERENCE = re.compile(r"\$(\([^)]*)?\Z")
_MAX_ITEM_CHARS = 65_536
_FLAG = re.compile(r"--?([A-Za-z][A-Za-z0-9_-]*)")


class Program(NamedTuple):
    """The main container of all tasks, and the item of each."""

    container: Object
    items: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


Text = tuple["Word", ...]
"""A word of a command: it may be a script, whose words differ one by one."""


class Word(NamedTuple):
    """A text without blanks, or the value of a variable, of which only the part between prefix and suffix differs."""

    prefix: str
    values: tuple[str, ...]
    """The differing part by task; empty if the word is the same in all."""
    suffix: str = ""


def program_key(container: Object) -> Object:
    """What siblings share: the number of words, the program itself, the names of variables, and all other fields."""
    command, arguments = container.get("command") or [], container.get("args") or []
    start = command[:1]
    if start and _is_shell(start[0]):
        # Two scripts are siblings if they start the same program.
        start += [each.split(maxsplit=1)[:1] for each in (*command, *arguments)[2:3]]
    return {
        "rest": {field: value for field, value in container.items() if field not in _PROGRAM_FIELDS},
        "start": start,
        "words": [len(command), len(arguments)],
        "env": [{**each, "value": ""} for each in container.get("env") or ()],
    }


def with_task_values(template: Object, containers: Sequence[Object]) -> Program:
    """The container whose words and variables are those of each task. Refused if no item can express them."""
    first: Object = containers[0]
    texts = {
        field: [_divide_words(values) for values in zip(*(each.get(field) or [] for each in containers), strict=True)]
        for field in ("command", "args")
    }
    command = [*texts["command"], *texts["args"]]
    entries = zip(*(each.get("env") or () for each in containers), strict=True)
    variables = {
        same[0]["name"]: Word("", tuple(each.get("value", "") for each in same)) for same in entries if _differ(same)
    }
    words = [word for text in command for word in text]
    _require_expressible([*words, *variables.values()], list(variables))
    names = [str(each["name"]) for each in first.get("env") or ()]
    columns = _shell_columns(variables, words, names)
    container = {**first}
    if names:
        container["env"] = [
            {**entry, "value": _NUMBER} if entry["name"] in variables else entry
            for entry in first["env"]
            if entry["name"] not in columns.values()
        ]
    if not columns:
        numbered = {field: list(map(_numbered, found)) for field, found in texts.items() if found}
        return Program({**container, **numbered})
    _require_shell_possible(template, first, command, list(variables))
    shell, is_known = (first["command"][0], True) if _is_shell(first["command"][0]) else ("sh", False)
    items, separator = _items(list(columns))
    exported = [name for name in columns.values() if name in variables]
    read = f"IFS={shlex.quote(separator) if separator else ''} read -r {' '.join(columns.values())}"
    script = [
        f"{read} < {_TASK_PATH}/{ITEM_FILE}",
        *([f"export {' '.join(exported)}"] if exported else []),
        "exec " + " ".join(_shell_word(each, columns) for each in command),
    ]
    container["command"] = [shell, "-c", "; ".join(script)]
    container.pop("args", None)
    started = () if is_known else (f"program: {first['command'][0]} -> sh, which starts it with the item of the task",)
    return Program(container, items, started)


def common_start(texts: Sequence[str]) -> str:
    """The characters with which all texts start."""
    first, last = min(texts), max(texts)
    return first[: next((index for index, char in enumerate(first) if last[index : index + 1] != char), len(first))]


def _differ(entries: Sequence[Object]) -> bool:
    return len({each.get("value", "") for each in entries}) > 1


def _divide_words(texts: Sequence[str]) -> Text:
    """Compares texts with the same number of words one by one, and others as a whole."""
    parts = [_BETWEEN_WORDS.split(each) for each in texts]
    if len({len(each) for each in parts}) > 1 or len({tuple(each[1::2]) for each in parts}) > 1:
        return (_divide(texts),)
    return tuple(_divide(values) for values in zip(*parts, strict=True))


def _divide(texts: Sequence[str]) -> Word:
    """Cuts the common start and end off, at the borders of names and numbers."""
    if len(set(texts)) == 1:
        return Word(texts[0], ())
    prefix = _NAME_END.sub("", common_start(texts))
    rest = [each[len(prefix) :] for each in texts]
    suffix = _NAME_END.sub("", common_start([each[::-1] for each in rest]))[::-1]
    return Word(prefix, tuple(each[: len(each) - len(suffix)] for each in rest), suffix)


def _is_shell(word: str) -> bool:
    return word.rpartition("/")[2] in _SHELLS


def _is_number(values: Sequence[str]) -> bool:
    """True if each value is the number of its task."""
    return all(value == str(task) for task, value in enumerate(values))


def _numbered(text: Text) -> str:
    """The text with the number of the task in place of what differs."""
    return "".join(f"{word.prefix}{_NUMBER if word.values else ''}{word.suffix}" for word in text)


def _shell_columns(variables: dict[str, Word], words: Sequence[Word], names: Sequence[str]) -> dict[Any, str]:
    """The name of a shell variable by the values that it has in the tasks; equal values share one."""
    columns = {word.values: name for name, word in variables.items() if not _is_number(word.values)}
    spoken = [word for word in words if word.values or not _BETWEEN_WORDS.fullmatch(word.prefix)]
    for before, word in zip([Word("", ()), *spoken], spoken, strict=False):
        if word.values and not _is_number(word.values) and word.values not in columns:
            flag = _FLAG.fullmatch(before.prefix)
            base = f"item_{flag[1].lower().replace('-', '_')}" if flag else "item"
            # Setting a variable of the container would change the environment of the program.
            taken = {*names, *columns.values()}
            name = next(each for each in chain([base], (f"{base}{number}" for number in count(2))) if each not in taken)
            columns[word.values] = name
    return columns


def _items(columns: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], str]:
    """The item of each task, and the separator of its values; none for a single value."""
    rows = list(zip(*columns, strict=True))
    if any("\n" in value for row in rows for value in row):
        _refuse("they differ in a text of several lines")
    if any(sum(map(len, row)) + len(row) > _MAX_ITEM_CHARS for row in rows):
        _refuse(f"they differ in texts of more than {_MAX_ITEM_CHARS:,} characters")
    if len(columns) == 1:
        return tuple(row[0] for row in rows), ""
    for separator in _SEPARATORS:
        is_free = all(separator not in value for row in rows for value in row)
        if is_free and (separator != " " or all(value and not value.isspace() for row in rows for value in row)):
            return tuple(separator.join(row) for row in rows), separator
    return _refuse("they differ in several texts, with every separator in them")


def _shell_word(text: Text, columns: dict[Any, str]) -> str:
    quoted, fixed = "", ""
    for word in text:
        if word.values in columns:
            quoted += _quote(fixed + word.prefix) + f'"${columns[word.values]}"'
            fixed = word.suffix
        else:
            fixed += _numbered((word,))
    return quoted + _quote(fixed) or "''"


def _quote(text: str) -> str:
    return shlex.quote(text) if text else ""


def _require_expressible(words: Sequence[Word], variables: Sequence[str]) -> None:
    for word in words:
        if word.values and (_OPEN_REFERENCE.search(word.prefix) or any("$" in value for value in word.values)):
            _refuse("they differ in a text with $, which Kubernetes may replace")
    for name in variables:
        if is_platform_variable(name):
            _refuse(f"they differ in the variable {name}, which the platform sets")


def _require_shell_possible(
    template: Object, container: Object, command: Sequence[Text], variables: Sequence[str]
) -> None:
    if not container.get("command"):
        _refuse("they differ, and have no command: only a command can be started with the item of a task")
    for name in variables:
        if not _VARIABLE.fullmatch(name) or name in _SHELL_VARIABLES:
            _refuse(f"they differ in the variable {name}, which a shell cannot set")
    fixed = "".join(part for text in command for word in text for part in (word.prefix, word.suffix))
    content = msgspec.json.encode(template).decode()
    if name := next((name for name in variables if f"$({name})" in content), ""):
        _refuse(f"they differ in the variable {name}, to which another value refers")
    set_names = [each["name"] for each in container.get("env") or ()]
    if any(f"$({name})" in fixed for name in set_names) or (container.get("envFrom") and "$(" in fixed):
        _refuse("they differ in a command that refers to variables")
    if any(_is_below_task_path(mount) for mount in container.get("volumeMounts") or ()):
        _refuse(f"they have files of their own in {_TASK_PATH}")


def _is_below_task_path(mount: Object) -> bool:
    return f"{mount['mountPath']}/".startswith(f"{_TASK_PATH}/")


def _refuse(what: str) -> NoReturn:
    raise Refused(Problem(CANNOT_IMPORT, what))
