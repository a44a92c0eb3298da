"""The manifests beside this module: objects in YAML, with variables."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

import yaml

from pincompute.kube.resource import Object

MANIFESTS = Path(__file__).parent / "manifests"


def fill_manifest(name: str, /, **variables: Any) -> list[Object]:
    """Objects of a manifest. All of its variables must be given; others are ignored."""
    text = (MANIFESTS / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(Template(text).substitute(variables)))
