"""Signs the certificate request of a pod, with its SPIFFE ID, like a signer in the cluster."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from pincompute.kube.client import Client
from pincompute.kube.resource import POD_CERTIFICATE_REQUESTS, Object

LIFE = timedelta(hours=1)


async def sign_pod_certificate(client: Client, request: Object) -> None:
    spec, metadata = request["spec"], request["metadata"]
    begin = datetime.now(UTC).replace(microsecond=0)
    name = f"spiffe://test/ns/{metadata['namespace']}/sa/{spec['serviceAccountName']}"
    status = {
        "certificateChain": _certificate(spec["stubPKCS10Request"], name, begin),
        "notBefore": _text(begin),
        "beginRefreshAt": _text(begin + LIFE / 2),
        "notAfter": _text(begin + LIFE),
        "conditions": [
            {
                "type": "Issued",
                "status": "True",
                "reason": "Tested",
                "message": "the pod is who it says",
                "lastTransitionTime": _text(begin),
            }
        ],
    }
    await client.patch(
        POD_CERTIFICATE_REQUESTS, metadata["name"], metadata["namespace"], {"status": status},
        style="merge", subresource="status", manager="test",
    )  # fmt: skip


def _certificate(request: str, name: str, begin: datetime) -> str:
    asked = x509.load_der_x509_csr(base64.b64decode(request))
    assert asked.is_signature_valid
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer)
        .public_key(asked.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(name)]), critical=True)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    return certificate.public_bytes(Encoding.PEM).decode()


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
