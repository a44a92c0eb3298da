"""Address of an API server, the authority that verifies it, and the credentials that authenticate us."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CREDENTIALS_MISSING, KUBECONFIG_INVALID, Reason
from pincompute.kube.plugin import ExecPlugin


@dataclass(frozen=True, slots=True)
class Access:
    server: str
    """Address such as `https://10.201.0.1:6443`, without a trailing slash."""
    server_name: str = ""
    """Name that the server's certificate must carry, where it differs from the address."""
    authority: bytes = b""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    plugin: ExecPlugin | None = None
    """Program that prints a token or a certificate, for a kubeconfig that holds neither."""
    namespace: str = "default"
    context: str = ""
    in_pod: bool = False
    """Whether it is the service account of this pod."""
    file: Path | None = None
    """Kubeconfig that this access was read from."""

    def bearer_token(self) -> str:
        """Bearer token for one request. A token file is read each time, because other processes renew it."""
        try:
            return self.token_file.read_text().strip() if self.token_file else self.token
        except OSError as error:
            what = f"the token file {self.token_file} cannot be read: {error.strerror}"
            raise self._refused(what, CREDENTIALS_MISSING) from error

    def ssl_context(self) -> ssl.SSLContext:
        """TLS context with our certificate; without an authority of its own, the system's authorities are trusted."""
        try:
            context = ssl.create_default_context(cadata=self.authority.decode() or None)
            if self.certificate:
                self._load_client_certificate(context)
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise self._refused(f"the certificates cannot be used: {error}") from error
        return context

    def _load_client_certificate(self, context: ssl.SSLContext) -> None:
        # Python's ssl module reads certificates only from files. This one is private and removed at once.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(self.certificate + b"\n" + self.key)
            file.flush()
            context.load_cert_chain(file.name, password=_no_password)

    def _refused(self, what: str, reason: Reason = KUBECONFIG_INVALID) -> Refused:
        where = Where(file=str(self.file or ""), object=f"context '{self.context}'")
        return Refused(Problem(reason, what, where, next="pin status"))


def _no_password() -> str:
    """An encrypted key is refused; without this OpenSSL would ask on the terminal and wait for ever."""
    return ""
