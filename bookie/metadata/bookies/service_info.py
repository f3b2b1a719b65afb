"""What a bookie publishes with its registration: endpoints and properties (protobuf). Pure values; any thread."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from bookie import __version__
from bookie.errors import MetadataSerializationError
from bookie.pb.data_formats_pb2 import BookieServiceInfoFormat

BOOKIE_PROTOCOL = "bookie-rpc"
EXTENSIONS_PROPERTY = "pybk.v3.ext"
"""The property with the V3 operations that Apache BookKeeper does not have, separated by commas. Java ignores it."""
VERSION_PROPERTY = "pybk.version"
"""The property with the version of a bookie, which `bkadmin health` shows."""
OUR_PROPERTIES = {EXTENSIONS_PROPERTY: "batchRead,writeClose,bookieLoad", VERSION_PROPERTY: __version__}
"""The properties that our bookies publish."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One port that a bookie serves.

    Attributes:
        id: The name of the endpoint.
        host: The host to connect to.
        port: The port to connect to.
        protocol: The protocol, such as `bookie-rpc` or `http`.
        auth: The names of authentication plugins.
        extensions: Further capabilities, such as `tls`.
    """

    id: str
    host: str
    port: int
    protocol: str
    auth: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Host and port, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BookieServiceInfo:
    """All that one bookie publishes.

    Attributes:
        endpoints: The ports that the bookie serves.
        properties: Properties by name.
    """

    endpoints: tuple[Endpoint, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    def client_endpoint(self) -> Endpoint | None:
        """Return the endpoint that clients connect to, or None if none is published."""
        return next((end for end in self.endpoints if end.protocol == BOOKIE_PROTOCOL), None)

    def v3_extensions(self) -> frozenset[str]:
        """Return the V3 operations beyond Apache BookKeeper's that the bookie supports; Java bookies have none."""
        names = self.properties.get(EXTENSIONS_PROPERTY, "").split(",")
        return frozenset(name.strip() for name in names if name.strip())

    def to_bytes(self) -> bytes:
        """Serialize the service info, in the form in which Java bookies publish it."""
        message = BookieServiceInfoFormat()
        for end in self.endpoints:
            message.endpoints.add(
                id=end.id, port=end.port, host=end.host, protocol=end.protocol, auth=end.auth, extensions=end.extensions
            )
        message.properties.update(self.properties)
        return message.SerializeToString(deterministic=True)


def bookie_endpoint(host: str, port: int, *, tls: bool = False) -> Endpoint:
    """Return the client port in the form in which Java bookies publish it.

    Args:
        host: The host that clients connect to.
        port: The client port.
        tls: Whether the bookie supports TLS.
    """
    return Endpoint("bookie", host, port, BOOKIE_PROTOCOL, extensions=("tls",) if tls else ())


def http_endpoint(host: str, port: int) -> Endpoint:
    """Return the admin HTTP port in the form in which Java bookies publish it.

    Args:
        host: The host to connect to.
        port: The HTTP port.
    """
    return Endpoint("httpserver", host, port, "http")


def readable_service_info(bookie_id: str, data: bytes | None) -> BookieServiceInfo | None:
    """Return what a bookie publishes, or None if it publishes nothing, or nothing that can be read."""
    try:
        return None if data is None else parse_service_info(bookie_id, data)
    except MetadataSerializationError:
        return None


def parse_service_info(bookie_id: str, data: bytes) -> BookieServiceInfo:
    """Parse what a bookie publishes. Empty data come from legacy bookies; host and port are then taken from the id.

    Args:
        bookie_id: The id of the bookie.
        data: The value of its registration.

    Raises:
        MetadataSerializationError: The data cannot be parsed, or are empty and the id is not host:port.
    """
    if not data:
        host, _, port = bookie_id.rpartition(":")
        if not host or not port.isdigit():
            raise MetadataSerializationError(f"bookie {bookie_id} publishes no endpoint, and its id is not host:port")
        return BookieServiceInfo((bookie_endpoint(host, int(port)),))
    try:
        message = BookieServiceInfoFormat.FromString(data)
    except DecodeError as error:
        raise MetadataSerializationError(f"service info of bookie {bookie_id} cannot be read: {error}") from error
    endpoints = tuple(
        Endpoint(end.id, end.host, end.port, end.protocol, tuple(end.auth), tuple(end.extensions))
        for end in message.endpoints
    )
    return BookieServiceInfo(endpoints, dict(message.properties))
