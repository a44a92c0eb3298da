"""A rejected certificate for every MUST of the SPIFFE X.509-SVID standard."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from certificate_factory import TRUST_DOMAIN, WEB_SPIFFE_ID, IssuedCertificate, issue_authority, issue_svid, key_usage
from pincompute.agents.identity.bundle import peer_id
from pincompute.base.problem import Refused
from pincompute.objects.spiffe import SpiffeId

ROOT = issue_authority()
DNS = x509.SubjectAlternativeName([x509.DNSName("web.me")])
MIXED = x509.SubjectAlternativeName([x509.DNSName("web.me"), x509.UniformResourceIdentifier(WEB_SPIFFE_ID)])
BAD_NAMES = {
    "another scheme": f"https://{TRUST_DOMAIN}/me/web",
    "the scheme in capitals": f"SPIFFE://{TRUST_DOMAIN}/me/web",
    "no trust domain": "spiffe:///me/web",
    "no path": f"spiffe://{TRUST_DOMAIN}",
    "an empty path": f"spiffe://{TRUST_DOMAIN}/",
    "an empty part": f"spiffe://{TRUST_DOMAIN}/me//web",
    "a slash at the end": f"spiffe://{TRUST_DOMAIN}/me/web/",
    "a dot segment": f"spiffe://{TRUST_DOMAIN}/me/./web",
    "a double dot segment": f"spiffe://{TRUST_DOMAIN}/me/../web",
    "percent": f"spiffe://{TRUST_DOMAIN}/me/w%65b",
    "a star": f"spiffe://{TRUST_DOMAIN}/me/*",
    "a query": f"spiffe://{TRUST_DOMAIN}/me/web?a=b",
    "a fragment": f"spiffe://{TRUST_DOMAIN}/me/web#a",
    "a port": f"spiffe://{TRUST_DOMAIN}:443/me/web",
    "a user": f"spiffe://ann@{TRUST_DOMAIN}/me/web",
    "capitals in the trust domain": f"spiffe://{TRUST_DOMAIN.upper()}/me/web",
    "percent in the trust domain": "spiffe://test%2Elocal/me/web",
    "a line break": f"spiffe://{TRUST_DOMAIN}/me/web\n",
    "too long": f"spiffe://{TRUST_DOMAIN}/me/{'w' * 2048}",
    "another trust domain": "spiffe://elsewhere.local/me/web",
}
BAD_CERTIFICATES = {
    "no names at all": issue_svid(ROOT, without=x509.SubjectAlternativeName),
    "no URI name": issue_svid(ROOT, without=x509.SubjectAlternativeName, more=[(DNS, True)]),
    "two URI names": issue_svid(ROOT, WEB_SPIFFE_ID, f"spiffe://{TRUST_DOMAIN}/me/api"),
    "the same URI name twice": issue_svid(ROOT, WEB_SPIFFE_ID, WEB_SPIFFE_ID),
    "an authority": issue_svid(ROOT, constraints=x509.BasicConstraints(ca=True, path_length=None)),
    "no key usage": issue_svid(ROOT, without=x509.KeyUsage),
    "a key usage that is not critical": issue_svid(ROOT, critical=False),
    "may sign certificates": issue_svid(ROOT, says=key_usage("digital_signature", "key_cert_sign")),
    "may sign lists of revoked ones": issue_svid(ROOT, says=key_usage("digital_signature", "crl_sign")),
    "may not sign": issue_svid(ROOT, says=key_usage("key_agreement")),
    "for servers only": issue_svid(ROOT, purposes=[ExtendedKeyUsageOID.SERVER_AUTH]),
    "for clients only": issue_svid(ROOT, purposes=[ExtendedKeyUsageOID.CLIENT_AUTH]),
    **{name: issue_svid(ROOT, uri) for name, uri in BAD_NAMES.items()},
}
GOOD = {
    "issued by our signer": issue_svid(ROOT),
    "further names that are not URIs": issue_svid(ROOT, without=x509.SubjectAlternativeName, more=[(MIXED, True)]),
    "without extended key usage": issue_svid(ROOT, purposes=[]),
    "without basic constraints": issue_svid(ROOT, without=x509.BasicConstraints),
}


@pytest.mark.parametrize("certificate", GOOD.values(), ids=GOOD)
def test_accepts_valid_certificate(certificate: IssuedCertificate) -> None:
    assert peer_id(certificate.der, TRUST_DOMAIN) == SpiffeId(TRUST_DOMAIN, ("me", "web"))
    assert str(peer_id(certificate.der, TRUST_DOMAIN)) == WEB_SPIFFE_ID


@pytest.mark.parametrize("certificate", BAD_CERTIFICATES.values(), ids=BAD_CERTIFICATES)
def test_rejects_invalid_certificate(certificate: IssuedCertificate) -> None:
    with pytest.raises(Refused) as refused:
        peer_id(certificate.der, TRUST_DOMAIN)
    assert [each.reason.code for each in refused.value.problems] == ["PeerRefused"]


@pytest.mark.parametrize("content", [b"", b"not a certificate", GOOD["issued by our signer"].der[:-9]])
def test_rejects_malformed_certificate(content: bytes) -> None:
    with pytest.raises(Refused, match="cannot be parsed"):
        peer_id(content, TRUST_DOMAIN)
