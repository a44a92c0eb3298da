"""Kubeflow's own definitions of its kinds, and from them the fields of pods that they carry.

`python scripts/kubeflow.py` writes those fields into the package again; the module comes through Go's own cache.
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
from pincompute.engine.toolchain import environment, find_go

MODULE = "github.com/kubeflow/training-operator@v1.8.1"
SUM = "h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc="
KINDS = {"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs"}

Structures = dict[str, str]

_HEAD = '''\
"""The fields of a pod that the kinds of Kubeflow carry: those of Kubernetes 1.29; written by scripts/kubeflow.py.

Each structure with its fields; `field=structure` says what is in a field.
"""

from __future__ import annotations

STRUCTURES: dict[str, str] = {
'''


@cache
def definitions() -> dict[str, Any]:
    """The CustomResourceDefinition of each kind, out of a module whose content is known by its sum."""
    with tempfile.TemporaryDirectory() as nowhere:
        command = [find_go().program, "mod", "download", "-json", MODULE]
        found = subprocess.run(
            command, cwd=nowhere, env={**environment(), "GOFLAGS": "-mod=mod"}, capture_output=True, check=True
        )
    module = json.loads(found.stdout)
    assert module["Sum"] == SUM, f"{MODULE} is not what it was: {module['Sum']}"
    crds = Path(module["Dir"], "manifests", "base", "crds")
    return {kind: _read(crds / f"kubeflow.org_{kind.lower()}s.yaml") for kind in KINDS}


def template(kind: str) -> Any:
    """The schema of a role's pod template."""
    (version,) = definitions()[kind]["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec["properties"][KINDS[kind]]["additionalProperties"]["properties"]["template"]


def structures(schema: Any) -> Structures:
    """Each structure once, under the name of the field in which it is first met."""
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


def written(found: Structures) -> str:
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
    """Only the names of fields, however deep; nothing where everything is carried."""
    if "properties" in schema:
        return {name: _shape(each) for name, each in sorted(schema["properties"].items())}
    if "items" in schema:
        return _shape(schema["items"])
    return None


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(), Loader=yaml.CSafeLoader)


if __name__ == "__main__":
    Path(kubeflow_fields.__file__).write_text(written(structures(template("PyTorchJob"))))
