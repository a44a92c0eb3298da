"""Checks a pod's certificate and requests the next one in time. Uses the standard library and the openssl program."""

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

IDENTITY_FILE, TRUST_FILE = "identity.pem", "trust.pem"
TOKEN_FILE, CA_FILE = "token", "ca.crt"
LIFETIME_S = 3600
TIMEOUT_S = 30.0
"""How long to wait for the signer's decision before a new request."""
POLL_INTERVAL_S = 0.2
_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_KEY_OPTIONS = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/stdout")


class RequestFailed(Exception):  # noqa: N818  (named by what happened)
    """The certificate could not be obtained; the message says why."""


class Validity(NamedTuple):
    """Unix times."""

    not_before: float
    not_after: float


def ensure_certificate(folder: Path, credentials: Path, renew_at: float) -> float:
    """Requests a certificate if there is none, or if the fraction `renew_at` of its lifetime has passed.

    Returns the seconds until the next renewal.
    """
    try:
        _write_atomically(folder / TRUST_FILE, (credentials / TRUST_FILE).read_bytes())
        validity = _read_validity(folder)
        if validity is None or _renews_in_s(validity, renew_at) <= 0:
            _write_atomically(folder / IDENTITY_FILE, _request_identity(credentials))
            validity = _read_validity(folder)
    except (OSError, subprocess.SubprocessError, http.client.HTTPException, ValueError, KeyError) as error:
        raise RequestFailed(f"no certificate yet: {error or type(error).__name__}") from error
    if validity is None:
        raise RequestFailed("the signer returned no certificate")
    return max(0.0, _renews_in_s(validity, renew_at))


def has_valid_certificate(folder: Path) -> bool:
    """Whether the folder has a certificate that is valid now."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        validity = _read_validity(folder)
        return validity is not None and validity.not_before <= time.time() < validity.not_after
    return False


def _renews_in_s(validity: Validity, renew_at: float) -> float:
    return validity.not_before + (validity.not_after - validity.not_before) * renew_at - time.time()


def _read_validity(folder: Path) -> Validity | None:
    file = folder / IDENTITY_FILE
    if not file.exists():
        return None
    dates = _openssl("x509", "-noout", "-startdate", "-enddate", "-in", str(file)).decode()
    not_before, not_after = (ssl.cert_time_to_seconds(line.partition("=")[2]) for line in dates.splitlines())
    return Validity(not_before, not_after)


def _request_identity(credentials: Path) -> bytes:
    """A new private key, and its certificate chain from the signer, as PEM. The key never leaves the pod."""
    created = _openssl("req", "-new", "-batch", "-subj", "/", *_KEY_OPTIONS)
    request_start = created.index(b"-----BEGIN CERTIFICATE REQUEST")
    return created[:request_start] + _request_chain(credentials, created[request_start:])


def _request_chain(credentials: Path, request: bytes) -> bytes:
    server, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
    context = ssl.create_default_context(cafile=credentials / CA_FILE)
    connection = http.client.HTTPSConnection(server, port, timeout=TIMEOUT_S, context=context)
    token = (credentials / TOKEN_FILE).read_text().strip()
    try:
        body = {
            "metadata": {"generateName": f"{os.environ['POD_NAME']}-"},
            "spec": {
                "signerName": names.IDENTITY_SIGNER,
                "request": base64.b64encode(request).decode(),
                "usages": ["digital signature", "client auth", "server auth"],
                "expirationSeconds": LIFETIME_S,
            },
        }
        created = _call_api(connection, token, "POST", _REQUESTS, body)
        return _wait_for_chain(connection, token, created["metadata"])
    finally:
        connection.close()


def _wait_for_chain(connection: http.client.HTTPSConnection, token: str, metadata: dict[str, Any]) -> bytes:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        found = _call_api(connection, token, "GET", f"{_REQUESTS}/{metadata['name']}")
        status = found.get("status", {})
        if certificate := status.get("certificate"):
            return base64.b64decode(certificate)
        for condition in status.get("conditions", ()):
            if condition["type"] in {"Denied", "Failed"}:
                raise RequestFailed(condition["message"])
        time.sleep(POLL_INTERVAL_S)
    raise RequestFailed(f"the signer did not decide on {metadata['name']} within {TIMEOUT_S:.0f} s")


def _call_api(
    connection: http.client.HTTPSConnection, token: str, method: str, path: str, body: Any = None
) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    content = json.loads(response.read())
    if response.status >= 400:
        raise RequestFailed(f"the API server returned {response.status}: {content.get('message', '')}")
    return dict(content)


def _write_atomically(file: Path, content: bytes) -> None:
    """Replaces the file at once, so that readers see the old or the new content. All containers of the pod read it."""
    if file.exists() and file.read_bytes() == content:
        return
    fresh = file.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.chmod(0o644)
    fresh.replace(file)


def _openssl(*arguments: str) -> bytes:
    done = subprocess.run(["openssl", *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise RequestFailed(f"openssl {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
