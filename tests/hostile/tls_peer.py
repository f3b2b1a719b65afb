"""Peers that use TLS after START_TLS, by Python's own ssl module, which shares nothing with our implementation."""

import socket
import ssl
import struct
from pathlib import Path

from bookie.server.configuration.settings import TlsSettings
from tests.fixtures.certificates import Authority, Party
from tests.hostile.peer import Peer

START_TLS = bytes.fromhex("0000000b0a0608031009180ad20600")
ACCEPTED = bytes.fromhex("0000000d0a0608031009180a1000d20600")
REFUSED = bytes.fromhex("0000000b0a0608031009180a109403")
"""Golden vectors 30 to 32."""


def settings_of(party: Party, *, trust: Path | None = None, **options: object) -> TlsSettings:
    """Return a bookie's settings; with `trust`, clients must have a certificate that it signed."""
    return TlsSettings(
        provider_factory="org.apache.bookkeeper.tls.TLSContextFactory",
        key_store=str(party.key),
        certificate_path=str(party.certificate),
        trust_store=str(trust or ""),
        client_authentication=trust is not None,
        **options,  # type: ignore[arg-type]
    )


def client_context(ca: Authority, party: Party | None = None) -> ssl.SSLContext:
    """Return a context that trusts `ca`, and presents `party`'s certificate when asked."""
    context = ssl.create_default_context(cafile=str(ca.certificate))
    if party is not None:
        context.load_cert_chain(party.certificate, party.key)
    return context


class TlsPeer(Peer):
    """A peer whose connection is encrypted before its first frame."""

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, *, receive_bytes: int = 0, segment_bytes: int = 0
    ) -> None:
        super().__init__(address, receive_bytes=receive_bytes, segment_bytes=segment_bytes)
        try:
            self.start_tls()
            self.sock: socket.socket = context.wrap_socket(self.sock, server_hostname=address[0])
        except BaseException:
            self.close()
            raise

    def abort(self) -> None:
        """Close with a reset, without TLS's closing message."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def start_tls(self) -> None:
        """Send START_TLS and check that the bookie agrees, in clear."""
        self.sock.sendall(START_TLS)
        answer = self.take(len(ACCEPTED))
        assert answer == ACCEPTED
