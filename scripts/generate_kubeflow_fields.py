"""Generates the list of pod fields that the kinds of Kubeflow carry, from Kubeflow's own CRDs.

`python scripts/generate_kubeflow_fields.py` updates the module in the package. The CRDs come from Go's module cache.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from pincompute.api import kubeflow_fields
from pincompute.engine.toolchain import find_go, go_environment

MODULE = "github.com/kubeflow/training-operator@v1.8.1"
SUM = "h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc="
KINDS = {"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs"}

Structures = dict[str, str]

_HEAD = '''\
"""Pod fields in Kubeflow's CRDs, which correspond to Kubernetes 1.29. Written by scripts/generate_kubeflow_fields.py.

Maps a structure to its fields; `field=structure` names the structure of the field's value.
"""

from __future__ import annotations

POD_STRUCTURES: dict[str, str] = {
'''


@cache
def definitions() -> dict[str, Any]:
    """CustomResourceDefinition of each kind, from a Go module with a known checksum."""
    with tempfile.TemporaryDirectory() as nowhere:
        command = [find_go().program, "mod", "download", "-json", MODULE]
        found = subprocess.run(
            command, cwd=nowhere, env={**go_environment(), "GOFLAGS": "-mod=mod"}, capture_output=True, check=True
        )
    module = json.loads(found.stdout)
    assert module["Sum"] == SUM, f"checksum of {MODULE} changed: {module['Sum']}"
    crds = Path(module["Dir"], "manifests", "base", "crds")
    return {kind: _read(crds / f"kubeflow.org_{kind.lower()}s.yaml") for kind in KINDS}


def template(kind: str) -> Any:
    """Schema of a role's pod template."""
    (version,) = definitions()[kind]["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec["properties"][KINDS[kind]]["additionalProperties"]["properties"]["template"]


def structures(schema: Any) -> Structures:
    """All structures, each once, named by the first field that has it."""
    names: dict[str, str] = {}
    found: Structures = {}

    def name_of(shape: dict[str, Any], field: str, parent: str) -> str:
        key = json.dumps(shape)
        if key not in names:
            names[key] = field if field not in names.values() else f"{parent}.{field}"
            found[names[key]] = ""
            inner = {each: name_of(of, each, names[key]) for each, of in shape.items() if of is not None}
            fields = [_field(each, inner.get(each)) for each in shape]
            found[names[key]] = " ".join(fields)
        return names[key]

    name_of(_shape(schema), "template", "")
    return found


def render_module(found: Structures) -> str:
    lines = []
    for name, fields in found.items():
        line = f'    "{name}": "{fields}",\n'
        if len(line) > 120:
            parts = textwrap.wrap(fields, 105, break_long_words=False, break_on_hyphens=False)
            inner = [f'        "{each} "\n' for each in parts[:-1]] + [f'        "{parts[-1]}"\n']
            line = f'    "{name}": (\n{"".join(inner)}    ),\n'
        lines.append(line)
    return f"{_HEAD}{''.join(lines)}}}\n"


def _field(name: str, structure: str | None) -> str:
    return name if structure is None else f"{name}={structure}"


def _shape(schema: Any) -> Any:
    """Field names of a schema at all levels; None for a schema without fixed fields."""
    if "properties" in schema:
        return {name: _shape(each) for name, each in sorted(schema["properties"].items())}
    if "items" in schema:
        return _shape(schema["items"])
    return None


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(), Loader=yaml.CSafeLoader)


if __name__ == "__main__":
    Path(kubeflow_fields.__file__).write_text(render_module(structures(template("PyTorchJob"))))
