"""Contenders: their programs, how they are built, and their versions. One that cannot be built is skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bench.figures import PIN, PYTHON, ROOT
from pincompute.base.problem import Refused
from pincompute.engine.toolchain import find_go, go_environment

HERE = Path(__file__).parent
BUILD = ROOT / "build" / "peers"
_ENVIRONMENT = BUILD / "venv"
_BINARIES = BUILD / "bin"
_PEER_PYTHON = str(_ENVIRONMENT / "bin" / "python")

GO, PYTHON_PEERS = "go", "python"


class Contender(NamedTuple):
    name: str
    command: tuple[str, ...]
    """KUBECONFIG stands for the path of one; all contenders have it in their environment, too."""
    toolchain: str = ""
    """Toolchain that builds it; empty for ours."""
    speaks: bool = False
    """Its standard output is JSON for the driver, and no log."""
    variables: tuple[tuple[str, str], ...] = ()
    """Its environment, beside KUBECONFIG."""


OURS = Contender("ours", (PIN, "operator", "--kubeconfig", "KUBECONFIG"))
KOPF, TUNED_KOPF = (
    Contender(
        name,
        (_PEER_PYTHON, "-m", "kopf", "run", "--standalone", "--all-namespaces", str(HERE / "kopf_operator" / file)),
        PYTHON_PEERS,
    )
    for name, file in (("kopf", "plain.py"), ("tuned-kopf", "tuned.py"))
)
CONTROLLER_RUNTIME = Contender("controller-runtime", (str(_BINARIES / "operator"),), GO)
OPERATORS = (OURS, KOPF, TUNED_KOPF, CONTROLLER_RUNTIME)

OUR_INFORMER = Contender("ours", (PYTHON, "-m", "bench.peers.clients.our_informer", "KUBECONFIG"), speaks=True)
KUBERNETES, LIGHTKUBE = (
    Contender(name, (_PEER_PYTHON, str(HERE / "clients" / f"{name}_informer.py")), PYTHON_PEERS, speaks=True)
    for name in ("kubernetes", "lightkube")
)
# By default the informer decodes JSON from a watch that sends the existing objects, for twice the processor time.
_BY_LIST = (("KUBE_FEATURE_WatchListClient", "false"),)
CLIENT_GO = Contender("client-go", (str(_BINARIES / "informer"),), GO, speaks=True, variables=_BY_LIST)
CLIENT_GO_PROTOBUF = CLIENT_GO._replace(
    name="client-go-protobuf", command=(*CLIENT_GO.command, "protobuf"), variables=()
)
INFORMERS = (OUR_INFORMER, KUBERNETES, LIGHTKUBE, CLIENT_GO, CLIENT_GO_PROTOBUF)


def build_peers() -> frozenset[str]:
    """Builds all peers under build/peers, and returns the toolchains that could be used. Prints a line for each other.

    A second call is quick: the environment is kept while its requirements are the same, and Go caches by itself.
    """
    return frozenset(name for name, build in ((PYTHON_PEERS, _build_environment), (GO, _build_go)) if build())


def _build_environment() -> bool:
    requirements = HERE / "requirements.txt"
    key, mark = sha256(requirements.read_bytes()).hexdigest(), _ENVIRONMENT / "requirements"
    if mark.exists() and mark.read_text() == key:
        return True
    print("peers: installing kopf, kubernetes and lightkube into build/peers/venv", flush=True)
    steps = (
        (sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)),
        (_PEER_PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(requirements)),
    )
    for step in steps:
        if not _succeeds("kopf, kubernetes and lightkube", *step):
            return False
    mark.write_text(key)
    return True


def _build_go() -> bool:
    try:
        go = find_go()
    except Refused as error:
        print(f"peers: skipped controller-runtime and client-go: {error}", flush=True)
        return False
    print(f"peers: building controller-runtime and client-go with Go {go.version}", flush=True)
    _BINARIES.mkdir(parents=True, exist_ok=True)
    # The flags of the engine's build, so that Go finds what it has compiled for Kubernetes.
    words = (
        str(go.program),
        "build",
        "-trimpath",
        "-buildvcs=false",
        "-o",
        f"{_BINARIES}/",
        "./operator",
        "./informer",
    )
    return _succeeds("controller-runtime and client-go", *words, cwd=HERE / "go", environment=go_environment())


def _succeeds(what: str, *command: str, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> bool:
    done = subprocess.run(
        command, cwd=cwd, env=environment or dict(os.environ), capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        print(f"peers: skipped {what}: {last}", flush=True)
    return done.returncode == 0


def versions() -> dict[str, str]:
    """Pinned versions of the peers, from their lock files."""
    return dict(sorted([*_python_versions(), *_go_versions()]))


def _python_versions() -> Iterator[tuple[str, str]]:
    pinned = re.findall(r"^([a-z]+)==(\S+)", (HERE / "requirements.txt").read_text(), re.MULTILINE)
    return ((name, version) for name, version in pinned if name in {"kopf", "kubernetes", "lightkube", "uvloop"})


def _go_versions() -> Iterator[tuple[str, str]]:
    required = re.findall(r"^\t(\S+) v(\S+)$", (HERE / "go" / "go.mod").read_text(), re.MULTILINE)
    return ((path.rpartition("/")[2], version) for path, version in required if path.endswith(("-go", "-runtime")))
