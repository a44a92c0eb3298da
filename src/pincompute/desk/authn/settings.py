"""The desk's settings for authentication, and the authenticator that follows from them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pincompute.api.whoami import SignIn
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SETTING_INVALID
from pincompute.base.urls import require_https
from pincompute.desk.authn.authenticator import Authenticator, AuthProvider
from pincompute.desk.authn.client_certificates import ClientCertificateAuth
from pincompute.desk.authn.local_token import LocalTokenAuth
from pincompute.desk.authn.service_accounts import ServiceAccountAuth, TokenReviewer
from pincompute.desk.authn.tls import TlsFiles, server_tls_context
from pincompute.desk.authn.trusted_proxies import TrustedProxies

if TYPE_CHECKING:
    from pincompute.desk.authn.code_flow import CodeFlow
    from pincompute.desk.authn.openid import OpenIdAuth

REQUIRED, OPTIONAL = "required", "optional"


class AuthnSettings(NamedTuple):
    """Named as the options of `pin desk`."""

    token: str
    person: str
    issuer: str = ""
    client: str = ""
    scopes: str = ""
    name_claim: str = ""
    groups_claim: str = ""
    administrators: str = ""
    email_verified: str = REQUIRED
    trusted_proxies: str = ""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    client_roots: Path | None = None
    trust_domain: str = ""
    web_url: str = ""
    web_client: str = ""

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """All fields but the token, which is read from a file."""
        return tuple(each for each in cls._fields if each != "token")

    def authenticator(self, reviewer: TokenReviewer, clock: Clock) -> Authenticator:
        # Without a local token there is no local administrator, as in a pod.
        providers: list[AuthProvider] = [LocalTokenAuth(self.token, self.person)] if self.token else []
        if self.issuer:
            providers.append(self._openid_provider(clock, self.client))
        providers.append(ServiceAccountAuth(reviewer, clock))
        if self.client_roots:
            if not self.trust_domain:
                raise _invalid_setting("--client-roots requires --trust-domain")
            providers.append(ClientCertificateAuth(self.trust_domain, clock))
        hint = "pin login" if self.issuer else "pin status"
        return Authenticator(providers, hint, trusted_proxies=self._proxies())

    def _proxies(self) -> TrustedProxies:
        try:
            return TrustedProxies.parse(self.trusted_proxies)
        except ValueError as error:
            raise _invalid_setting(f"--trusted-proxies: {error}") from error

    def code_flow(self, clock: Clock, client_secret: Callable[[], str]) -> CodeFlow | None:
        """The sign-in of browsers, for a desk that knows its provider and its own address."""
        if not (self.issuer and self.web_url):
            return None
        from pincompute.desk.authn.code_flow import CodeFlow, CodeFlowSettings

        try:
            require_https(self.web_url)
        except ValueError as error:
            raise _invalid_setting(f"--web-url: {error}") from error
        client = self.web_client or self.client
        # A session ends by itself, and needs no access to the provider afterwards.
        scopes = " ".join(each for each in self.scopes.split() if each != "offline_access")
        settings = CodeFlowSettings(self.issuer, client, scopes, self.web_url)
        return CodeFlow(settings, self._openid_provider(clock, client), clock, client_secret)

    def _openid_provider(self, clock: Clock, audience: str) -> OpenIdAuth:
        # Imported here, as its libraries load slowly, and a local platform has no provider.
        from pincompute.desk.authn.openid import OpenIdAuth, OpenIdSettings

        try:
            require_https(self.issuer)
        except ValueError as error:
            raise _invalid_setting(f"--issuer: {error}") from error
        if self.email_verified not in {REQUIRED, OPTIONAL}:
            raise _invalid_setting(f"--email-verified: '{self.email_verified}' must be {REQUIRED} or {OPTIONAL}")
        settings = OpenIdSettings(
            self.issuer, audience, self.name_claim, self.groups_claim, self.administrators,
            requires_verified_email=self.email_verified == REQUIRED,
        )  # fmt: skip
        return OpenIdAuth(settings, clock)

    def sign_in(self) -> SignIn:
        return SignIn(self.issuer, self.client, self.scopes, bool(self.web_url)) if self.issuer else SignIn()

    def tls_context(self) -> ssl.SSLContext | None:
        if self.tls_certificate and self.tls_key:
            return server_tls_context(TlsFiles(self.tls_certificate, self.tls_key, self.client_roots))
        if self.tls_certificate or self.tls_key or self.client_roots:
            raise _invalid_setting(
                "--tls-certificate and --tls-key require each other, and --client-roots requires both"
            )
        return None


def _invalid_setting(what: str) -> Refused:
    return Refused(Problem(SETTING_INVALID, what, next="pin desk --help"))
