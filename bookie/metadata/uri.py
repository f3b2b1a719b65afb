"""metadataServiceUri: which store, where, and which ledger layout. Pure values; any thread.

zk[+layout]://host:port[;host:port...]/root    ZooKeeper (`;` between hosts, `,` is accepted)
lmdb:///directory                              the embedded store, owned by this process
grpc://host:port                               the embedded store of another process
"""

from dataclasses import dataclass

from bookie.errors import ConfigurationError

SCHEMES = ("zk", "lmdb", "grpc")
ROOT_DEFAULT = "/ledgers"
REMEDY = "use zk+hierarchical://host:2181/ledgers, lmdb:///directory or grpc://host:3182"


@dataclass(frozen=True, slots=True)
class MetadataUri:
    """A parsed metadataServiceUri."""

    scheme: str
    layout: str | None
    """The ledger layout that the store must have; None: whatever it has."""
    hosts: tuple[str, ...]
    path: str
    """Ledgers root without a trailing slash, or the directory of the embedded store."""


def parse_uri(text: str) -> MetadataUri:
    """Raises ConfigurationError naming what is wrong."""
    prefix, separator, rest = text.strip().partition("://")
    if not separator:
        raise ConfigurationError(f"metadataServiceUri {text!r} has no scheme: {REMEDY}")
    scheme, _, layout = prefix.lower().partition("+")
    if scheme not in SCHEMES:
        raise ConfigurationError(f"metadataServiceUri {text!r}: scheme {scheme!r} is unknown: {REMEDY}")
    if layout and scheme != "zk":
        raise ConfigurationError(f"metadataServiceUri {text!r}: only zk takes a layout: write {scheme}://")
    authority, _, path = rest.partition("/")
    hosts = tuple(host.strip() for host in authority.replace(";", ",").split(",") if host.strip())
    path = "/" + path.strip("/")
    if scheme == "lmdb":
        if hosts or path == "/":
            raise ConfigurationError(f"metadataServiceUri {text!r} needs an absolute directory: lmdb:///var/lib/bookie")
    elif not hosts:
        raise ConfigurationError(f"metadataServiceUri {text!r} names no host: {REMEDY}")
    elif scheme == "zk" and path == "/":
        raise ConfigurationError(f"metadataServiceUri {text!r} names no ledgers root: append {ROOT_DEFAULT}")
    elif scheme == "grpc" and (len(hosts) > 1 or path != "/"):
        raise ConfigurationError(f"metadataServiceUri {text!r} is not grpc://host:port")
    return MetadataUri(scheme, None if layout in {"", "null"} else layout, hosts, path)


def uri_from_zookeeper_keys(servers: str, root: str = ROOT_DEFAULT, layout: str = "null") -> str:
    """The URI that the older keys zkServers, zkLedgersRootPath and ledgerManagerType mean."""
    return f"zk+{layout}://{servers.replace(',', ';')}/{root.strip('/')}"
