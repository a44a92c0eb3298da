"""One look at a pod's certificate, and a request for the next one where it is time. Standard library, and openssl."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pincompute.api import names

IDENTITY, TRUST = "identity.pem", "trust.pem"
TOKEN, AUTHORITY = "token", "ca.crt"
LIFE = 3600
PATIENCE = 30.0
"""Seconds that an answer may take; then it is asked anew."""
POLL = 0.2
_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/stdout")


class Failed(Exception):  # noqa: N818  (it reads as what happened)
    """In words for people."""


class Life(NamedTuple):
    begin: float
    end: float


def keep(folder: Path, means: Path, share: float) -> float:
    """See to it that there is a certificate of which less than that share has passed; for how many seconds it is so."""
    try:
        _lay(folder / TRUST, (means / TRUST).read_bytes())
        life = _life(folder)
        if life is None or _left(life, share) <= 0:
            _lay(folder / IDENTITY, _new(means))
            life = _life(folder)
    except (OSError, subprocess.SubprocessError, http.client.HTTPException, ValueError, KeyError) as error:
        raise Failed(f"no certificate yet: {error or type(error).__name__}") from error
    if life is None:
        raise Failed("what the signer gave is no certificate")
    return max(0.0, _left(life, share))


def valid(folder: Path) -> bool:
    """Whether there is one that others still believe."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        life = _life(folder)
        return life is not None and life.begin <= time.time() < life.end
    return False


def _left(life: Life, share: float) -> float:
    return life.begin + (life.end - life.begin) * share - time.time()


def _life(folder: Path) -> Life | None:
    file = folder / IDENTITY
    if not file.exists():
        return None
    said = _openssl("x509", "-noout", "-startdate", "-enddate", "-in", str(file)).decode()
    begin, end = (ssl.cert_time_to_seconds(line.partition("=")[2]) for line in said.splitlines())
    return Life(begin, end)


def _new(means: Path) -> bytes:
    """The key, which nobody else has seen, and the certificate for it with the signer's own."""
    made = _openssl("req", "-new", "-batch", "-subj", "/", *_KEY)
    begin = made.index(b"-----BEGIN CERTIFICATE REQUEST")
    return made[:begin] + _signed(means, made[begin:])


def _signed(means: Path, request: bytes) -> bytes:
    server, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
    context = ssl.create_default_context(cafile=means / AUTHORITY)
    line = http.client.HTTPSConnection(server, port, timeout=PATIENCE, context=context)
    token = (means / TOKEN).read_text().strip()
    try:
        body = {
            "metadata": {"generateName": f"{os.environ['POD_NAME']}-"},
            "spec": {
                "signerName": names.IDENTITY,
                "request": base64.b64encode(request).decode(),
                "usages": ["digital signature", "client auth", "server auth"],
                "expirationSeconds": LIFE,
            },
        }
        asked = _send(line, token, "POST", _REQUESTS, body)
        return _answer(line, token, asked["metadata"])
    finally:
        line.close()


def _answer(line: http.client.HTTPSConnection, token: str, metadata: dict[str, Any]) -> bytes:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        seen = _send(line, token, "GET", f"{_REQUESTS}/{metadata['name']}")
        status = seen.get("status", {})
        if certificate := status.get("certificate"):
            return base64.b64decode(certificate)
        for each in status.get("conditions", ()):
            if each["type"] in {"Denied", "Failed"}:
                raise Failed(each["message"])
        time.sleep(POLL)
    raise Failed(f"the signer has not answered to {metadata['name']} in {PATIENCE:.0f} s")


def _send(line: http.client.HTTPSConnection, token: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    line.request(method, path, None if body is None else json.dumps(body), headers)
    answer = line.getresponse()
    said = json.loads(answer.read())
    if answer.status >= 400:
        raise Failed(f"the API server answered {answer.status}: {said.get('message', '')}")
    return dict(said)


def _lay(file: Path, content: bytes) -> None:
    """Whole at once: who reads meanwhile reads the one before. Every container of the pod may read it."""
    if file.exists() and file.read_bytes() == content:
        return
    fresh = file.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.chmod(0o644)
    fresh.replace(file)


def _openssl(*words: str) -> bytes:
    done = subprocess.run(["openssl", *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise Failed(f"openssl {words[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
