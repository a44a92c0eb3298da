"""Output formats for programs."""

from __future__ import annotations

import msgspec


def as_format(output: str, value: object) -> str:
    """The value as `json` or `yaml`."""
    return as_yaml(value) if output == "yaml" else as_json(value)


def as_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def as_yaml(value: object) -> str:
    # Imported here, as YAML takes long to load and most commands do not need it.
    import yaml

    return yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False)
