"""A client for the admin port of one running bookie. It turns errors of gRPC into errors of one line."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.errors import BookieUnavailable, BookKeeperError, IllegalOperation, MetadataStoreError, RequestTimeout
from bookie_admin.bkadmin.options import settings_of, token_file_of, with_configuration, with_timeout
from bookie_admin.bkadmin.profiles import from_profile

if TYPE_CHECKING:
    import grpc

    from bookie.admin_port.channel import AdminAccess

__all__ = ["AdminPort", "Asking", "CutOff", "gathered", "with_admin", "with_admin_port"]

ADDRESS_DEFAULT = "127.0.0.1:3182"
PORT_MAX = 65_535
OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_time_ms", 5_000),  # a silent stream: ping to see whether the bookie is alive
    ("grpc.http2.max_pings_without_data", 0),  # no limit to the number of these pings
)
NO_GRPC = "alpn"
TLS_WORDS = ("handshake", "ssl", "tls", "certificate", "wrong_version_number")


class CutOff(BookKeeperError):
    """A stream broke off before its end; what was received is incomplete."""


@dataclass(frozen=True, slots=True)
class AdminPort:
    """The admin port to connect to and the credentials to use, as the command line names them.

    Attributes:
        address: the value of --admin, or None.
        files: the paths of token, CA, certificate and key by the names of their options.
        conf: the value of --conf, or None.
        timeout_s: how long to wait for an answer, in seconds.
        given: whether --admin stands on the command line; commands that can also work without a running bookie ask it
            only then.
    """

    address: str | None
    files: dict[str, Path | None]
    conf: Path | None = None
    timeout_s: float = 10.0
    given: bool = False

    def within(self, conf: Path | None, timeout_s: float) -> "AdminPort":
        """Return a copy with the values of the command's --conf and --timeout."""
        return replace(self, conf=conf, timeout_s=timeout_s)

    @contextmanager
    def open(self) -> Iterator["Asking"]:
        """Open a channel to the admin port. The connection is made by the first call.

        Raises:
            ConfigurationError: a file of the credentials cannot be used.
            IllegalOperation: the address or the combination of options is invalid.
        """
        from bookie.admin_port.channel import open_channel  # noqa: PLC0415

        target, access = self._where()
        within_ms = int(self.timeout_s * 1000)
        # gRPC applies the larger of the two timeouts, and that of the ping defaults to one minute.
        answered = (("grpc.keepalive_timeout_ms", within_ms), ("grpc.http2.ping_timeout_ms", within_ms))
        connected = ("grpc.min_reconnect_backoff_ms", within_ms)  # its default is 20 s, for which a stream would wait
        channel = open_channel(target, access, (*OPTIONS, *answered, connected))
        try:
            yield Asking(channel, target, self.timeout_s, access)
        finally:
            channel.close()

    def _where(self) -> "tuple[str, AdminAccess]":
        from bookie.admin_port.channel import AdminAccess  # noqa: PLC0415

        text = {name: None if path is None else str(path) for name, path in self.files.items()}
        address, encrypted = self.address, text["tls_ca"] is not None or text["tls_cert"] is not None
        if address is None and self.conf is not None:
            settings = settings_of(self.conf)
            address = f"{settings.server.admin_host}:{settings.server.admin_port}"
            encrypted = encrypted or bool(settings.access.tls_certificate)
            text["token_file"] = text["token_file"] or token_file_of(settings) or None
        address = address or ADDRESS_DEFAULT
        scheme, _, rest = address.rpartition("://")
        if scheme not in ("", "grpc", "grpcs"):
            raise IllegalOperation(f"--admin {address}: unknown scheme; write HOST:PORT, or grpcs://HOST:PORT for TLS")
        host, _, port = rest.rpartition(":")
        if not host or not port.isdecimal() or int(port) > PORT_MAX:
            raise IllegalOperation(f"--admin {address}: not of the form HOST:PORT; the port is the bookie's adminPort")
        certificate, key = text["tls_cert"], text["tls_key"]
        if (certificate is None) != (key is None):
            raise IllegalOperation("--tls-cert and --tls-key must be given together")
        return rest, AdminAccess(encrypted or scheme == "grpcs", text["tls_ca"], certificate, key, text["token_file"])


class Asking:
    """An open channel to one admin port."""

    def __init__(self, channel: Any, target: str, timeout_s: float, access: "AdminAccess") -> None:
        self._channel = channel
        self._access = access
        self._target = target
        self._timeout_s = timeout_s

    def stub(self, kind: Any) -> Any:
        """Return a generated stub of class `kind`, whose methods can be passed to `call`, `stream` and `watch`."""
        return kind(self._channel)

    def call(self, method: Any, request: Any) -> Any:
        """Call a unary method and return its response.

        Raises:
            BookieUnavailable: the bookie cannot be reached, or did not answer within the timeout.
            MetadataStoreError: the bookie's metadata store did not answer it.
            RequestTimeout: what was asked for has not ended in that time.
            IllegalOperation: the bookie refused the request.
        """
        import grpc  # noqa: PLC0415

        try:
            return method(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise self._failure(error) from None

    def stream(self, method: Any, request: Any, *, endless: bool = False) -> Iterator[Any]:
        """Yield the responses of a streaming method.

        Args:
            method: the method of a stub.
            request: its request message.
            endless: wait for responses without a time limit, as long as the bookie answers pings.

        Raises:
            CutOff: the stream broke off after at least one response.
            BookKeeperError: it failed before the first response; as for `call`.
        """
        import grpc  # noqa: PLC0415

        some = False
        answers = method(request, timeout=None if endless else self._timeout_s)
        try:
            for answer in answers:
                some = True
                yield answer
        except grpc.RpcError as error:
            failure = self._failure(error)
            raise (CutOff(f"{failure} - the output is incomplete") if some else failure) from None
        finally:
            answers.cancel()

    def watch(self, method: Any, request: Any, tell: Callable[[Any], None]) -> None:
        """Call `tell` with each response of an endless stream until Ctrl-C, which is the regular way to end it.

        Raises:
            CutOff: the bookie ended the stream.
            BookKeeperError: as for `stream`.
        """
        with contextlib.suppress(KeyboardInterrupt):
            for answer in self.stream(method, request, endless=True):
                tell(answer)
            raise CutOff(f"admin port {self._target}: the bookie has ended the stream, as it does when it stops")

    def _failure(self, error: "grpc.RpcError") -> BookKeeperError:
        import grpc  # noqa: PLC0415

        from bookie.admin_port.channel import TOLD  # noqa: PLC0415

        code, said = error.code(), " ".join((error.details() or "").split())
        where = f"admin port {self._target}"
        if TOLD in (error.trailing_metadata() or ()):
            told = RequestTimeout if code is grpc.StatusCode.DEADLINE_EXCEEDED else MetadataStoreError
            return told(f"{where}: {said}")
        if code is grpc.StatusCode.UNAVAILABLE:
            return BookieUnavailable(f"{where}: {_unreachable(said, self._access)}")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return BookieUnavailable(f"{where}: no answer within {self._timeout_s:g} s; increase --timeout")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return IllegalOperation(
                f"{where}: unknown method; check that this is a bookie's adminPort, and that its version fits"
            )
        return IllegalOperation(f"{where}: {said or code.name}")


def _unreachable(said: str, access: "AdminAccess") -> str:
    low = said.lower()
    if any(word in low for word in TLS_WORDS):
        return f"the TLS handshake failed; check --tls-ca, --tls-cert and --tls-key, and that the port has TLS ({said})"
    if "dns" in low or "resol" in low:
        return f"the host name cannot be resolved; check --admin ({said})"
    if "refused" in low:
        return "connection refused; check --admin, the bookie's adminPort, and that the bookie is running"
    if NO_GRPC in low:
        return f"this port does not speak gRPC; check --admin, and that it names the bookie's adminPort ({said})"
    return f"connection lost; check that the bookie is running, and {_doubted(access)} ({said})"


def _doubted(access: "AdminAccess") -> str:
    """Return what else may be the reason for a connection that the other end closes: it does not say why it refuses."""
    if not access.encrypted:
        return "whether its port requires TLS (--tls-ca)"
    if access.certificate is None:
        return "whether it demands a certificate of its clients (adminTlsClientCaPath; --tls-cert and --tls-key)"
    from cryptography import x509  # noqa: PLC0415

    ends = x509.load_pem_x509_certificate(Path(access.certificate).read_bytes()).not_valid_after_utc
    if ends < datetime.now(UTC):
        return f"replace the certificate {access.certificate}, which expired on {ends:%Y-%m-%d}"
    return f"that {access.certificate} is of an authority that the bookie knows (adminTlsClientCaPath)"


def gathered(answers: Iterator[Any]) -> tuple[list[Any], str]:
    """Return all responses of a finite stream, and why it broke off: "" if it is complete.

    Raises:
        BookKeeperError: the stream failed before the first response.
    """
    found: list[Any] = []
    try:
        found.extend(answers)
    except CutOff as error:
        return found, str(error)
    return found, ""


_options = (
    click.option(
        "--admin", "address", envvar="BOOKIE_ADMIN", metavar="HOST:PORT",
        help=f"Admin port of the bookie. Default: that of --conf, else {ADDRESS_DEFAULT}.  [env: BOOKIE_ADMIN]",
    ),
    click.option(
        "--token-file", envvar="BOOKIE_ADMIN_TOKEN_FILE", type=click.Path(path_type=Path, dir_okay=False),
        help="File with the token to authenticate with.  [env: BOOKIE_ADMIN_TOKEN_FILE]",
    ),
    click.option(
        "--tls-ca", envvar="BOOKIE_ADMIN_TLS_CA", type=click.Path(path_type=Path, dir_okay=False),
        help="TLS: file with the CA certificates to trust (PEM).  [env: BOOKIE_ADMIN_TLS_CA]",
    ),
    click.option(
        "--tls-cert", type=click.Path(path_type=Path, dir_okay=False),
        help="TLS: file with the client certificate (PEM).",
    ),
    click.option(
        "--tls-key", type=click.Path(path_type=Path, dir_okay=False),
        help="TLS: file with the key of that certificate (PEM).",
    ),
)  # fmt: skip
FILES = ("token_file", "tls_ca", "tls_cert", "tls_key")


def with_admin_port(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name an admin port to a command that has --conf and --timeout already.

    The command receives them as `admin`, and must call `admin.within(conf, timeout_s)` before it uses them.
    """

    @functools.wraps(function)
    def with_it(*args: Any, address: str | None, **options: Any) -> None:
        files = {name: _path(from_profile(name, name.replace("_", "-"), options.pop(name))) for name in FILES}
        source = click.get_current_context().get_parameter_source("address")
        given = source is click.core.ParameterSource.COMMANDLINE
        address = from_profile("address", "admin", address)
        function(*args, admin=AdminPort(address, files, given=given), **options)

    for option in reversed(_options):
        with_it = option(with_it)
    return with_it


def _path(given: Path | str | None) -> Path | None:
    return Path(given) if isinstance(given, str) else given


def with_admin(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a running bookie, including --conf and --timeout; the command gets them as `admin`."""

    @functools.wraps(function)
    def with_it(*args: Any, admin: AdminPort, conf: Path | None, timeout_s: float, **options: Any) -> None:
        function(*args, admin=admin.within(from_profile("conf", "conf", conf), timeout_s), **options)

    return with_admin_port(with_configuration(with_timeout(with_it)))
