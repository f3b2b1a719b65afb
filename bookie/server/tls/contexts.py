"""TLS contexts of the data port, made from files, and remade when the files change.

Used at start, by `--check`, and by a thread of its own. Keys and passwords go from their files to OpenSSL and
nowhere else; errors name keys, paths and remedies, never contents.
"""

import logging
from datetime import UTC, datetime

from cryptography.x509 import Certificate
from OpenSSL import SSL
from OpenSSL.crypto import X509, X509StoreFlags

from bookie._fast.base.openssl_c import version
from bookie._fast.base.tls import TlsServerContext
from bookie.changed_files import ChangedFiles
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.settings import TlsSettings
from bookie.server.process.repeating import Repeating
from bookie.server.tls.ciphers import split
from bookie.server.tls.files import Identity, read_identity, read_trusted

__all__ = ["make_context", "TlsContexts"]

log = logging.getLogger(__name__)

PROTOCOLS = {"TLSv1.2": SSL.OP_NO_TLSv1_2, "TLSv1.3": SSL.OP_NO_TLSv1_3}
OLD_PROTOCOLS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")


def make_context(settings: TlsSettings) -> SSL.Context:
    """Return a context for new connections, from the present files. Raises ConfigError."""
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    # A resumed session would ignore what has changed since, such as the trust store or a revoked certificate.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(b"bookie")
    context.set_options(
        SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_COMPRESSION | SSL.OP_CIPHER_SERVER_PREFERENCE
    )
    context.set_options(_without(settings.protocols))
    _set_ciphers(context, settings.cipher_suites)
    _use_identity(context, settings, read_identity(settings))
    if settings.client_authentication:
        _require_certificates(context, read_trusted(settings))
    return context


def _without(protocols: str) -> int:
    """Return the options that leave only the wanted protocols."""
    wanted = [name.strip() for name in protocols.split(",") if name.strip()]
    if not wanted:
        return 0
    for name in wanted:
        if name not in PROTOCOLS:
            reason = "is too old to be safe" if name in OLD_PROTOCOLS else "is not known"
            raise ConfigError(
                "tlsEnabledProtocols", protocols, f"{name} {reason}", "set it to TLSv1.2, TLSv1.3 or both"
            )
    return sum(option for name, option in PROTOCOLS.items() if name not in wanted)


def _set_ciphers(context: SSL.Context, suites: str) -> None:
    older, newer = split(suites)
    try:
        context.set_cipher_list(older.encode())
        context.set_tls13_ciphersuites(newer.encode())
    except SSL.Error:
        raise ConfigError(
            "tlsEnabledCipherSuites", suites, "OpenSSL knows none of these suites, or not one of those for TLSv1.3",
            "use names as in TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 and TLS_AES_128_GCM_SHA256, or remove it",
        ) from None  # fmt: skip


def _use_identity(context: SSL.Context, settings: TlsSettings, identity: Identity) -> None:
    try:
        context.use_certificate(identity.certificate)
        for certificate in identity.chain:
            context.add_extra_chain_cert(certificate)
        context.use_privatekey(identity.key)
        context.check_privatekey()
    except SSL.Error:
        raise ConfigError(
            "tlsKeyStore", settings.key_store, "key and certificate do not match, or OpenSSL rejects them",
            "set it to the key of the certificate, for RSA with 2048 bits or more",
        ) from None  # fmt: skip
    if identity.certificate.not_valid_after_utc < datetime.now(UTC):
        log.warning("the TLS certificate has expired: clients that verify it cannot connect")


def _require_certificates(context: SSL.Context, trusted: list[Certificate]) -> None:
    store = context.get_cert_store()
    assert store is not None
    store.set_flags(X509StoreFlags.PARTIAL_CHAIN)  # whatever is listed is trusted, as in Java, not only what is a root
    for certificate in trusted:
        store.add_cert(X509.from_cryptography(certificate))
        context.add_client_ca(certificate)
    context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT)


class TlsContexts:
    """The context in use. The constructor loads it, or raises ConfigError; `start` watches the files until `stop`.

    A changed file that cannot be used is logged once, and the old context stays.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self.settings = settings
        self._files = ChangedFiles(
            settings.key_store,
            settings.key_store_password_path,
            settings.certificate_path,
            settings.trust_store,
            settings.trust_store_password_path,
        )
        self.server_context = TlsServerContext(
            make_context(settings),
            handshakes_max=settings.handshakes_max,
            timeout_ms=settings.handshake_timeout_ms,
            per_address_max=settings.handshakes_per_address_max,
        )
        self._watch = Repeating("tls-files", settings.refresh_s, self.refresh)

    def start(self) -> None:
        """Start watching the files, unless that is disabled."""
        log.info("TLS is offered", extra={"library": version(), "client_certificates": self._policy()})
        if self.settings.refresh_s:
            self._watch.start()

    def stop(self) -> None:
        """Stop watching. Idempotent."""
        self._watch.stop()

    def refresh(self) -> bool:
        """Check the files now. Return True if a new context is in use."""
        if not self._files.changed():
            return False
        try:
            self.server_context.replace(make_context(self.settings))
        except ConfigError as error:
            log.error("TLS files have changed but cannot be used; the old ones stay in use: %s", error)
            return False
        log.info("TLS files have changed and were reloaded for new connections")
        return True

    def _policy(self) -> str:
        return "required" if self.settings.client_authentication else "not requested"
