"""Every MUST of the SPIFFE X.509-SVID standard that one certificate can break: each has one that is refused."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from authorities import DOMAIN, WEB, Made, authority, svid, usage
from pincompute.agents.identity.bundle import peer_id
from pincompute.base.problem import Refused
from pincompute.objects.spiffe import SpiffeId

ROOT = authority()
DNS = x509.SubjectAlternativeName([x509.DNSName("web.me")])
MIXED = x509.SubjectAlternativeName([x509.DNSName("web.me"), x509.UniformResourceIdentifier(WEB)])
BAD_NAMES = {
    "another scheme": f"https://{DOMAIN}/me/web",
    "the scheme in capitals": f"SPIFFE://{DOMAIN}/me/web",
    "no trust domain": "spiffe:///me/web",
    "no path": f"spiffe://{DOMAIN}",
    "an empty path": f"spiffe://{DOMAIN}/",
    "an empty part": f"spiffe://{DOMAIN}/me//web",
    "a slash at the end": f"spiffe://{DOMAIN}/me/web/",
    "here": f"spiffe://{DOMAIN}/me/./web",
    "one up": f"spiffe://{DOMAIN}/me/../web",
    "percent": f"spiffe://{DOMAIN}/me/w%65b",
    "a star": f"spiffe://{DOMAIN}/me/*",
    "a query": f"spiffe://{DOMAIN}/me/web?a=b",
    "a fragment": f"spiffe://{DOMAIN}/me/web#a",
    "a port": f"spiffe://{DOMAIN}:443/me/web",
    "a user": f"spiffe://ann@{DOMAIN}/me/web",
    "capitals in the trust domain": f"spiffe://{DOMAIN.upper()}/me/web",
    "percent in the trust domain": "spiffe://test%2Elocal/me/web",
    "a line's end": f"spiffe://{DOMAIN}/me/web\n",
    "too long": f"spiffe://{DOMAIN}/me/{'w' * 2048}",
    "another trust domain": "spiffe://elsewhere.local/me/web",
}
BAD_CERTIFICATES = {
    "no names at all": svid(ROOT, without=x509.SubjectAlternativeName),
    "no URI name": svid(ROOT, without=x509.SubjectAlternativeName, more=[(DNS, True)]),
    "two URI names": svid(ROOT, WEB, f"spiffe://{DOMAIN}/me/api"),
    "the same URI name twice": svid(ROOT, WEB, WEB),
    "an authority": svid(ROOT, constraints=x509.BasicConstraints(ca=True, path_length=None)),
    "no key usage": svid(ROOT, without=x509.KeyUsage),
    "a key usage that is not critical": svid(ROOT, critical=False),
    "may sign certificates": svid(ROOT, says=usage("digital_signature", "key_cert_sign")),
    "may sign lists of revoked ones": svid(ROOT, says=usage("digital_signature", "crl_sign")),
    "may not sign": svid(ROOT, says=usage("key_agreement")),
    "for servers only": svid(ROOT, purposes=[ExtendedKeyUsageOID.SERVER_AUTH]),
    "for clients only": svid(ROOT, purposes=[ExtendedKeyUsageOID.CLIENT_AUTH]),
    **{name: svid(ROOT, uri) for name, uri in BAD_NAMES.items()},
}
GOOD = {
    "as the signer makes them": svid(ROOT),
    "names of other kinds beside it": svid(ROOT, without=x509.SubjectAlternativeName, more=[(MIXED, True)]),
    "without extended key usage": svid(ROOT, purposes=[]),
    "without basic constraints": svid(ROOT, without=x509.BasicConstraints),
}


@pytest.mark.parametrize("made", GOOD.values(), ids=GOOD)
def test_a_good_certificate_says_who_it_is(made: Made) -> None:
    assert peer_id(made.der, DOMAIN) == SpiffeId(DOMAIN, ("me", "web"))
    assert str(peer_id(made.der, DOMAIN)) == WEB


@pytest.mark.parametrize("made", BAD_CERTIFICATES.values(), ids=BAD_CERTIFICATES)
def test_a_bad_certificate_is_nobody(made: Made) -> None:
    with pytest.raises(Refused) as refused:
        peer_id(made.der, DOMAIN)
    assert [each.reason.code for each in refused.value.problems] == ["PeerRefused"]


@pytest.mark.parametrize("content", [b"", b"not a certificate", GOOD["as the signer makes them"].der[:-9]])
def test_what_is_no_certificate_is_nobody(content: bytes) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        peer_id(content, DOMAIN)
