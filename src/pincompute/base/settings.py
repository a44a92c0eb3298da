"""Settings of the CLI. Precedence: flag, environment variable, settings file, default."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID

if TYPE_CHECKING:
    from collections.abc import Mapping


class Setting(NamedTuple):
    """A setting and its default."""

    name: str
    default: str
    meaning: str

    @property
    def variable(self) -> str:
        return f"PIN_{self.name.upper()}"


class Value(NamedTuple):
    setting: Setting
    text: str
    origin: str


def _home(variable: str, fallback: str) -> str:
    return os.environ.get(variable) or str(Path.home() / fallback)


SETTINGS = (
    Setting("name", "main", "platform that commands use, as in `pin up --name`"),
    Setting("project", "me", "project of new workloads"),
    Setting("token", "", "file with a token for the desk, for programs; default: the login, or the token of `pin up`"),
    Setting("cache", _home("XDG_CACHE_HOME", ".cache") + "/pincompute", "folder of downloads and builds"),
    Setting("state", _home("XDG_STATE_HOME", ".local/state") + "/pincompute", "folder of platform state; must be kept"),
)  # fmt: skip


def settings_file(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pincompute" / "config.toml"


def resolve_settings(flags: Mapping[str, str | None], environ: Mapping[str, str], file: Path) -> dict[str, Value]:
    """Every setting with its value and the origin of the value."""
    written = _read(file)
    values = {}
    for setting in SETTINGS:
        flag = flags.get(setting.name)
        if flag is not None:
            values[setting.name] = Value(setting, flag, f"flag --{setting.name}")
        elif setting.variable in environ:
            values[setting.name] = Value(setting, environ[setting.variable], f"environment {setting.variable}")
        elif setting.name in written:
            values[setting.name] = Value(setting, written[setting.name], f"file {file}")
        else:
            values[setting.name] = Value(setting, setting.default, "default")
    return values


def setting_value(name: str, flag: str | None = None) -> str:
    """The effective value of one setting."""
    return resolve_settings({name: flag}, os.environ, settings_file(os.environ))[name].text


def _read(file: Path) -> dict[str, str]:
    try:
        written = file.read_bytes()
    except FileNotFoundError:
        return {}
    # Imported here because most commands find no settings file, and start faster without it.
    import tomllib

    try:
        content = tomllib.loads(written.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(
            Problem(
                SETTING_INVALID,
                f"the settings file is not TOML: {error}",
                Where(file=str(file)),
                next=f"edit {file}",
            )
        ) from error
    known = {each.name for each in SETTINGS}
    problems = [
        Problem(SETTING_INVALID, f"unknown setting '{name}'", Where(file=str(file), field=name),
                note=f"settings: {', '.join(sorted(known))}")
        for name in content if name not in known
    ] + [
        Problem(SETTING_INVALID, f"'{name}' must be a string: add quotes", Where(file=str(file), field=name))
        for name, value in content.items() if name in known and not isinstance(value, str)
    ]  # fmt: skip
    if problems:
        raise Refused(*problems)
    return content
