"""Edits of a workload's file that an answer of `pin why` proposes, as a member would make them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

Fields = dict[str, Any]
_ITEMS = re.compile(r", | and ")


def edited_fields(fields: Fields, next_: str) -> Fields | None:
    """The fields of the file after the first edit that the text proposes; None if it proposes none."""
    for pattern, edit in _EDITS:
        if found := pattern.search(next_):
            edited = copy.deepcopy(fields)
            return _without_empty(edited) if edit(edited, found) else None
    return None


def _without_empty(content: Any) -> Any:
    """The content without the maps and lists that a removal has emptied."""
    if not isinstance(content, dict):
        return [_without_empty(each) for each in content] if isinstance(content, list) else content
    kept = {key: _without_empty(value) for key, value in content.items()}
    return {key: value for key, value in kept.items() if value not in ({}, [])}


def _request(fields: Fields, found: re.Match[str]) -> bool:
    for amount, name in re.findall(r"([0-9.]+\w*) (cpu|memory)", found[1]):
        fields[name] = amount
    return True


def _raise_memory(fields: Fields, found: re.Match[str]) -> bool:
    fields["memory"] = found[1] or found[2]
    return True


def _bound(fields: Fields, found: re.Match[str]) -> bool:
    if found[2] in {"cpu", "memory"}:
        fields[found[2]] = found[1]
        return True
    containers = fields.get("template", {}).get("containers", ())
    amounts = [each for container in containers for each in container.get("resources", {}).values()]
    for each in amounts:
        if found[2] in each:
            each[found[2]] = found[1]
    return bool(amounts)


def _remove_from_template(fields: Fields, found: re.Match[str]) -> bool:
    template = fields.get("template", {})
    return all(_remove_item(template, each) for each in _ITEMS.split(found[1]))


def _remove_item(template: Fields, item: str) -> bool:
    kind, _, name = item.partition(" ")
    if kind == "volume":
        template["volumes"] = [each for each in template.get("volumes", ()) if each["name"] != name]
    elif name.startswith("of container "):
        for container in template.get("containers", ()):
            if container["name"] == name.removeprefix("of container "):
                _remove_of_container(container, kind)
    else:
        *parents, last = item.split(".")
        for each in parents:
            template = template.get(each, {})
        return template.pop(last, None) is not None
    return True


def _remove_of_container(container: Fields, field: str) -> None:
    if field != "hostPort":
        container.pop(field, None)
        return
    for port in container.get("ports", ()):
        port.pop(field, None)


def _remove_label(fields: Fields, found: re.Match[str]) -> bool:
    selector = fields.get("template", {}).get("nodeSelector", {})
    return selector.pop(found[1], None) is not None


def _set_label(fields: Fields, found: re.Match[str]) -> bool:
    fields.setdefault("template", {}).setdefault("nodeSelector", {})[found[1]] = found[2]
    return True


def _remove_resource(fields: Fields, found: re.Match[str]) -> bool:
    for container in fields.get("template", {}).get("containers", ()):
        for amounts in container.get("resources", {}).values():
            amounts.pop(found[1], None)
    return True


def _remove_field(fields: Fields, found: re.Match[str]) -> bool:
    *parents, last = found[1].split(".")
    for each in parents:
        fields = fields.get(each, {})
    return fields.pop(last, None) is not None


_EDITS: tuple[tuple[re.Pattern[str], Callable[[Fields, re.Match[str]], bool]], ...] = (
    (re.compile(r"request at most (.+?) in the file"), _request),
    (
        re.compile(r"raise memory in the file to (?:at least )?(\d+\w*)|memory in the file, such as to (\d+\w*)"),
        _raise_memory,
    ),
    (re.compile(r"set at (?:most|least) (\S+) (\S+) in the file"), _bound),
    (re.compile(r"remove (\S+) from nodeSelector in the file"), _remove_label),
    (re.compile(r"set (\S+): (\S+) in nodeSelector of the file"), _set_label),
    (re.compile(r"remove (\S+) from resources in the file"), _remove_resource),
    (re.compile(r"remove (.+?) from spec\.template"), _remove_from_template),
    (re.compile(r"(?:remove (?=\w+ in the file)|leave out )([\w.]+)"), _remove_field),
)
"""The more specific first."""
