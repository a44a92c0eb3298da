"""Documents as a person would have written them."""

from __future__ import annotations

import yaml

from pincompute.api.documents import scalar
from pincompute.objects.content import Object


class _Written(yaml.SafeDumper):
    """As people write: several lines as a block, and everything where it stands."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Quoted, where whoever reads a file of ours would take it for something else.
    style = "|" if "\n" in text else None if scalar(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Written.add_representer(str, _text)


def written(document: Object) -> str:
    return str(yaml.dump(document, Dumper=_Written, sort_keys=False, width=110, allow_unicode=True))
