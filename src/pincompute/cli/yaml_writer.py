"""Writes documents as YAML in the style of a hand-written file."""

from __future__ import annotations

import yaml

from pincompute.api.documents import parse_scalar
from pincompute.objects.content import Object


class _DocumentDumper(yaml.SafeDumper):
    """Writes long strings as blocks, and repeats equal parts instead of aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Quotes strings that our reader of documents would take for another type.
    style = "|" if "\n" in text else None if parse_scalar(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_DocumentDumper.add_representer(str, _represent_string)


def format_document(document: Object) -> str:
    return str(yaml.dump(document, Dumper=_DocumentDumper, sort_keys=False, width=110, allow_unicode=True))
