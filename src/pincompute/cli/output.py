"""What is printed for programs."""

from __future__ import annotations

import msgspec


def as_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def as_yaml(value: object) -> str:
    # Only the form that is asked for is loaded: a person waits for it.
    import yaml

    return yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False)
