"""Settings: a flag beats the environment, the environment beats the file, the file beats the default."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID

if TYPE_CHECKING:
    from collections.abc import Mapping


class Setting(NamedTuple):
    """One thing that a person may set, and what it is when nobody does."""

    name: str
    default: str
    means: str

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
    Setting("name", "main", "the platform that commands speak of, as in `pin up --name`"),
    Setting("project", "me", "the project that new work goes to"),
    Setting("token", "", "the file with a token to show the desk, for programs; the login or `pin up`'s by default"),
    Setting("cache", _home("XDG_CACHE_HOME", ".cache") + "/pincompute", "what can be made again"),
    Setting("state", _home("XDG_STATE_HOME", ".local/state") + "/pincompute", "what must be kept"),
)  # fmt: skip


def settings_file(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pincompute" / "config.toml"


def settle(flags: Mapping[str, str | None], environ: Mapping[str, str], file: Path) -> dict[str, Value]:
    """Every setting with its value and where the value came from."""
    written = _read(file)
    settled = {}
    for setting in SETTINGS:
        flag = flags.get(setting.name)
        if flag is not None:
            settled[setting.name] = Value(setting, flag, f"flag --{setting.name}")
        elif setting.variable in environ:
            settled[setting.name] = Value(setting, environ[setting.variable], f"environment {setting.variable}")
        elif setting.name in written:
            settled[setting.name] = Value(setting, written[setting.name], f"file {file}")
        else:
            settled[setting.name] = Value(setting, setting.default, "default")
    return settled


def setting(name: str, flag: str | None = None) -> str:
    """The value that this process goes by."""
    return settle({name: flag}, os.environ, settings_file(os.environ))[name].text


def _read(file: Path) -> dict[str, str]:
    try:
        written = file.read_bytes()
    except FileNotFoundError:
        return {}
    # Only who has written one needs to know how it reads.
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
        Problem(SETTING_INVALID, f"no setting is called '{name}'", Where(file=str(file), field=name),
                note=f"the settings are {', '.join(sorted(known))}")
        for name in content if name not in known
    ] + [
        Problem(SETTING_INVALID, f"'{name}' must be a text in quotes", Where(file=str(file), field=name))
        for name, value in content.items() if name in known and not isinstance(value, str)
    ]  # fmt: skip
    if problems:
        raise Refused(*problems)
    return content
