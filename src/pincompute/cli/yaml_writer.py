"""Writes documents as YAML in the style of a hand-written file."""

from __future__ import annotations

import io

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


_BLOCKS = {"spec", "template", "containers", "initContainers", "configuration"}
"""Fields that begin a line of their own each, however short they are."""
_MAX_FLOW_CHARS = 96


def format_document(document: Object) -> str:
    return str(yaml.dump(document, Dumper=_DocumentDumper, sort_keys=False, width=110, allow_unicode=True))


def format_compact(document: Object) -> str:
    """The document with short lists and mappings on one line, as `env: [{name: A, value: b}]`."""
    dumper = _DocumentDumper(io.StringIO(), sort_keys=False)
    root = dumper.represent_data(document)
    _set_flow(root, is_block=True)
    return str(yaml.serialize(root, Dumper=yaml.SafeDumper, width=110, allow_unicode=True))


def _set_flow(node: yaml.Node, *, is_block: bool) -> None:
    """Sets the style of a node and of all below. Items of a list that does not fit may fit each for itself."""
    node_ = node
    if isinstance(node_, yaml.CollectionNode):
        node_.flow_style = not is_block and _flow_chars(node_) <= _MAX_FLOW_CHARS
    if isinstance(node_, yaml.MappingNode):
        for key, value in node_.value:
            _set_flow(value, is_block=key.value in _BLOCKS)
    elif isinstance(node_, yaml.SequenceNode):
        for value in node_.value:
            _set_flow(value, is_block=is_block)


def _flow_chars(node: yaml.Node) -> int:
    """Length of the node on one line; a text of several lines has a block of its own."""
    if isinstance(node, yaml.MappingNode):
        return 2 + sum(_flow_chars(key) + _flow_chars(value) + 4 for key, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return 2 + sum(_flow_chars(value) + 2 for value in node.value)
    return _MAX_FLOW_CHARS + 1 if "\n" in node.value else len(node.value)
