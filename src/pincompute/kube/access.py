"""Access: the address of an API server, and what proves who it is and who we are."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CREDENTIALS_MISSING, KUBECONFIG_INVALID, Reason
from pincompute.kube.plugin import Plugin


@dataclass(frozen=True, slots=True)
class Access:
    server: str
    """Such as `https://10.201.0.1:6443`, without a slash at its end."""
    server_name: str = ""
    """The name its certificate must carry, where that is not the address."""
    authority: bytes = b""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    plugin: Plugin | None = None
    """A program that gives a token or a certificate, where neither stands here."""
    namespace: str = "default"
    context: str = ""
    file: Path | None = None
    """The kubeconfig that it was read from."""

    def bearer(self) -> str:
        """The token to show, read each time from a file that others renew."""
        try:
            return self.token_file.read_text().strip() if self.token_file else self.token
        except OSError as error:
            what = f"the token file {self.token_file} cannot be read: {error.strerror}"
            raise self._refused(what, CREDENTIALS_MISSING) from error

    def tls(self) -> ssl.SSLContext:
        """What to verify and what to show; with no authority given, the system's are trusted."""
        try:
            context = ssl.create_default_context(cadata=self.authority.decode() or None)
            if self.certificate:
                self._show_certificate(context)
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise self._refused(f"the certificates cannot be used: {error}") from error
        return context

    def _show_certificate(self, context: ssl.SSLContext) -> None:
        # OpenSSL, as Python offers it, reads certificates from files only; this one is private and gone at once.
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
