"""A bookie's id, which ensembles contain for as long as its data exist. It queries the host's network; any thread."""

import fcntl
import ipaddress
import re
import socket
import struct
from dataclasses import dataclass

from bookie.errors import ConfigurationError

BOOKIE_ID = re.compile(r"[a-zA-Z0-9:-_.\-]+\Z")  # the range from ':' to '_' is Apache BookKeeper's
NAME = re.compile(r"(?=.{1,253}\Z)([a-zA-Z0-9_-]{1,63}\.)*(?!\d+\.?\Z)[a-zA-Z0-9_-]{1,63}\.?\Z")
"""A host name. Its last part is not a number, so that a mistyped IPv4 address does not count as one."""
SIOCGIFADDR = 0x8915
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - for a bookie that publishes a name or an address of its host
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings:
    """The settings that determine the id. Of the first three after `port`, the first one that is set decides."""

    port: int
    bookie_id: str | None = None
    advertised_address: str | None = None
    listening_interface: str | None = None
    use_host_name: bool = False
    use_short_host_name: bool = False
    allow_loopback: bool = False


def check_bookie_id(bookie_id: str) -> str:
    """Return the id. Raises ConfigurationError if Apache BookKeeper would refuse it."""
    if not BOOKIE_ID.match(bookie_id):
        raise ConfigurationError(
            f"bookie id {bookie_id!r} has characters other than letters, digits and :;<=>?@[\\]^_.-"
        )
    if bookie_id.lower() == "readonly":
        raise ConfigurationError(f"bookie id {bookie_id!r} is reserved for a node in the metadata store")
    return bookie_id


def choose_bookie_id(settings: IdentitySettings) -> str:
    """Return the id of this bookie. Raises ConfigurationError, also for a loopback address that is not allowed."""
    if settings.bookie_id:
        try:
            return check_bookie_id(settings.bookie_id)
        except ConfigurationError as error:
            raise ConfigurationError(f"bookieId={settings.bookie_id}: {error}; correct it") from error
    return check_bookie_id(f"{advertised_host(settings)}:{settings.port}")


def candidate_ids(settings: IdentitySettings) -> tuple[str, ...]:
    """Return every id that this bookie may have had under other settings of the same machine, the present one first."""
    present = choose_bookie_id(settings)
    if settings.bookie_id:
        return (present,)
    address = _own_address(settings)
    hosts = [address, *_host_names(address)]
    return tuple(dict.fromkeys([present, *(f"{host}:{settings.port}" for host in hosts)]))


def advertised_host(settings: IdentitySettings) -> str:
    """Return the host that clients connect to.

    Raises ConfigurationError for an advertised address that is none, and for a loopback address that is not allowed.
    """
    if settings.advertised_address:
        return _checked_host(settings.advertised_address)
    address = _own_address(settings)
    if is_loopback(address) and not settings.allow_loopback:
        raise ConfigurationError(
            f"this bookie would serve at {address}, which no other machine can reach: "
            "set advertisedAddress or listeningInterface, or allowLoopback=true on a single machine"
        )
    if not settings.use_host_name:
        return address
    full, short = _host_names(address)
    return short if settings.use_short_host_name else full


def bind_host(settings: IdentitySettings) -> str:
    """Return the address to listen on.

    It is all addresses only if the bookie publishes an address of this host; without any setting it is loopback.
    """
    if settings.listening_interface:
        return _interface_address(settings.listening_interface)
    advertised = settings.advertised_address or (_own_address(settings) if settings.use_host_name else LOOPBACK)
    return LOOPBACK if is_loopback(advertised) else ANY_ADDRESS


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _checked_host(host: str) -> str:
    if not NAME.match(host):
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise ConfigurationError(
                f"advertisedAddress={host}: it is neither a host name nor an IP address; give one of them, without"
                " scheme or port: the port is that of bookiePort"
            ) from None
    return host


def _host_names(address: str) -> tuple[str, str]:
    name = socket.getfqdn(address)
    return name, name if name == address else name.partition(".")[0]


def _own_address(settings: IdentitySettings) -> str:
    """Return the interface's address, or the host's if its name is used, or loopback."""
    if settings.listening_interface:
        return _interface_address(settings.listening_interface)
    if not settings.use_host_name:
        return LOOPBACK
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError as error:
        raise ConfigurationError(
            f"host name {socket.gethostname()!r} has no address ({error}): set advertisedAddress or listeningInterface"
        ) from error


def _interface_address(name: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            reply = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            known = ", ".join(sorted(known for _, known in socket.if_nameindex()))
            raise ConfigurationError(
                f"listeningInterface {name!r} has no IPv4 address ({error.strerror}): this host has {known}"
            ) from error
    return socket.inet_ntoa(reply[20:24])
