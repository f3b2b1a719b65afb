"""The admin port of one running bookie, as commands ask it; what gRPC answers is told in one line."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from admin.bkadmin.options import settings_of, token_file_of, with_configuration, with_timeout
from bookie.errors import BookieUnavailable, BookKeeperError, IllegalOperation

if TYPE_CHECKING:
    import grpc

    from bookie.admin_port.channel import AdminAccess

__all__ = ["AdminPort", "Asking", "CutOff", "gathered", "with_admin", "with_admin_port"]

ADDRESS_DEFAULT = "127.0.0.1:3182"
OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_time_ms", 5_000),  # a stream that says nothing for long: is the bookie still there?
    ("grpc.http2.max_pings_without_data", 0),  # no limit to that question
)
TLS_WORDS = ("handshake", "ssl", "tls", "certificate", "wrong_version_number")


class CutOff(BookKeeperError):
    """A stream has ended before its end: what came before is a part."""


@dataclass(frozen=True, slots=True)
class AdminPort:
    """Which bookie, and how to get in, as the command line has it."""

    address: str | None
    files: dict[str, Path | None]
    conf: Path | None = None
    timeout_s: float = 10.0
    given: bool = False
    """The command line itself names the port: commands that can do without are meant to use it."""

    def within(self, conf: Path | None, timeout_s: float) -> "AdminPort":
        """With what the command's other options say."""
        return replace(self, conf=conf, timeout_s=timeout_s)

    @contextmanager
    def open(self) -> Iterator["Asking"]:
        """A connection to it; nothing is sent yet. ConfigurationError names a file that cannot be used."""
        from bookie.admin_port.channel import open_channel  # noqa: PLC0415

        target, access = self._where()
        within_ms = int(self.timeout_s * 1000)
        # The longer of them counts, and that of the ping is a minute where nothing is said.
        answered = (("grpc.keepalive_timeout_ms", within_ms), ("grpc.http2.ping_timeout_ms", within_ms))
        channel = open_channel(target, access, (*OPTIONS, *answered))
        try:
            yield Asking(channel, target, self.timeout_s)
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
            raise IllegalOperation(f"--admin {address}: write HOST:PORT, or grpcs://HOST:PORT for TLS")
        host, _, port = rest.rpartition(":")
        if not host or not port.isdigit():
            raise IllegalOperation(f"--admin {address}: it is not HOST:PORT; the port is the bookie's adminPort")
        certificate, key = text["tls_cert"], text["tls_key"]
        if (certificate is None) != (key is None):
            raise IllegalOperation("--tls-cert and --tls-key come together: name both")
        return rest, AdminAccess(encrypted or scheme == "grpcs", text["tls_ca"], certificate, key, text["token_file"])


class Asking:
    """Questions to one port."""

    def __init__(self, channel: Any, target: str, timeout_s: float) -> None:
        self._channel = channel
        self._target = target
        self._timeout_s = timeout_s

    def stub(self, kind: Any) -> Any:
        """A generated stub of this kind, for `call` and `stream`."""
        return kind(self._channel)

    def call(self, method: Any, request: Any) -> Any:
        """The answer. BookKeeperError in one line."""
        import grpc  # noqa: PLC0415

        try:
            return method(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise self._told(error) from None

    def stream(self, method: Any, request: Any, *, endless: bool = False) -> Iterator[Any]:
        """Answer by answer. CutOff once some came; before that as `call`. `endless`: no time limit but for the bookie's
        sign of life.
        """
        import grpc  # noqa: PLC0415

        some = False
        answers = method(request, timeout=None if endless else self._timeout_s)
        try:
            for answer in answers:
                some = True
                yield answer
        except grpc.RpcError as error:
            told = self._told(error)
            raise (CutOff(f"{told} - what was shown is a part") if some else told) from None
        finally:
            answers.cancel()

    def watch(self, method: Any, request: Any, tell: Callable[[Any], None]) -> None:
        """Tell each answer of an endless stream, until Ctrl-C, which is how it is meant to end."""
        with contextlib.suppress(KeyboardInterrupt):
            for answer in self.stream(method, request, endless=True):
                tell(answer)

    def _told(self, error: "grpc.RpcError") -> BookKeeperError:
        import grpc  # noqa: PLC0415

        code, said = error.code(), " ".join((error.details() or "").split())
        where = f"admin port {self._target}"
        if code is grpc.StatusCode.UNAVAILABLE:
            return BookieUnavailable(f"{where}: {_unreachable(said)}")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return BookieUnavailable(f"{where}: no answer within {self._timeout_s:g} s; raise --timeout")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return IllegalOperation(f"{where}: it does not know this; is it a bookie's adminPort, of this version?")
        return IllegalOperation(f"{where}: {said or code.name}")


def _unreachable(said: str) -> str:
    low = said.lower()
    if any(word in low for word in TLS_WORDS):
        return f"no TLS connection: check --tls-ca, --tls-cert and --tls-key, and that the port has TLS ({said})"
    if "dns" in low or "resol" in low:
        return f"the host is not known: check --admin ({said})"
    if "refused" in low:
        return "nobody listens there: check --admin, the bookie's adminPort, and that it runs"
    return f"the connection was lost: does the bookie run, and does its port want TLS (--tls-ca)? ({said})"


def gathered(answers: Iterator[Any]) -> tuple[list[Any], str]:
    """All of a stream that ends by itself, and why it was cut off; "" when it is whole. What came first decides."""
    found: list[Any] = []
    try:
        found.extend(answers)
    except CutOff as error:
        return found, str(error)
    return found, ""


_options = (
    click.option(
        "--admin", "address", envvar="BOOKIE_ADMIN", metavar="HOST:PORT",
        help=f"Admin port of the bookie; else what --conf says, else {ADDRESS_DEFAULT}.  [env: BOOKIE_ADMIN]",
    ),
    click.option(
        "--token-file", envvar="BOOKIE_ADMIN_TOKEN_FILE", type=click.Path(path_type=Path, dir_okay=False),
        help="A file with the token to show.  [env: BOOKIE_ADMIN_TOKEN_FILE]",
    ),
    click.option(
        "--tls-ca", envvar="BOOKIE_ADMIN_TLS_CA", type=click.Path(path_type=Path, dir_okay=False),
        help="TLS: the authorities to trust (PEM).  [env: BOOKIE_ADMIN_TLS_CA]",
    ),
    click.option("--tls-cert", type=click.Path(path_type=Path, dir_okay=False), help="TLS: our certificate (PEM)."),
    click.option("--tls-key", type=click.Path(path_type=Path, dir_okay=False), help="TLS: its key (PEM)."),
)  # fmt: skip
FILES = ("token_file", "tls_ca", "tls_cert", "tls_key")


def with_admin_port(function: Callable[..., None]) -> Callable[..., None]:
    """For commands that have a configuration and a time limit already: `admin`, to be used `within` those."""

    @functools.wraps(function)
    def with_it(*args: Any, address: str | None, **options: Any) -> None:
        files = {name: options.pop(name) for name in FILES}
        source = click.get_current_context().get_parameter_source("address")
        given = source is click.core.ParameterSource.COMMANDLINE
        function(*args, admin=AdminPort(address, files, given=given), **options)

    for option in reversed(_options):
        with_it = option(with_it)
    return with_it


def with_admin(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say which running bookie; the command gets it as `admin`."""

    @functools.wraps(function)
    def with_it(*args: Any, admin: AdminPort, conf: Path | None, timeout_s: float, **options: Any) -> None:
        function(*args, admin=admin.within(conf, timeout_s), **options)

    return with_admin_port(with_configuration(with_timeout(with_it)))
