"""Parse metadataServiceUri: which store, where it is, and which ledger layout it has. Pure values; any thread.

zk[+layout]://host:port[;host:port...]/root    ZooKeeper (`;` between hosts, `,` is accepted)
lmdb:///directory                              the embedded store, owned by this process
grpc://host:port                               the embedded store of another process
grpcs://host:port?ca=FILE                      the same, encrypted; the default of `ca` is the system's authorities
etcd://host:port[,host:port...]/scope          etcd, all keys below `/scope`
etcds://host:port[,host:port...]/scope?ca=FILE the same, encrypted

grpc and grpcs accept `token=FILE`, etcd and etcds accept `user=NAME` with `password=FILE`, and grpcs and etcds also
`certificate=FILE` and `key=FILE`. Only paths are accepted, never the secrets themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from bookie.errors import ConfigurationError

SCHEMES = ("zk", "lmdb", "grpc", "grpcs", "etcd", "etcds")
TLS = ("ca", "certificate", "key")
LOGIN = ("user", "password")
OPTIONS = {"grpc": ("token",), "grpcs": (*TLS, "token"), "etcd": LOGIN, "etcds": (*TLS, *LOGIN)}
ROOT_DEFAULT = "/ledgers"
ETCD_PORT = 2379
REMEDY = "use zk+hierarchical://host:2181/ledgers, etcd://host:2379/ledgers, lmdb:///directory or grpc://host:3182"


@dataclass(frozen=True, slots=True)
class MetadataUri:
    """A parsed metadataServiceUri."""

    scheme: str
    layout: str | None
    """The ledger layout that the store must have; None means any."""
    hosts: tuple[str, ...]
    path: str
    """The ledgers root or etcd's scope without a trailing slash, or the directory of the embedded store."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Paths of files by name: `ca`, `certificate`, `key`, `token`, `password`; and the name of the `user`."""


def parse_uri(text: str) -> MetadataUri:
    """Parse a metadata service URI. Raises ConfigurationError with what is wrong."""
    prefix, separator, rest = text.strip().partition("://")
    if not separator:
        raise ConfigurationError(f"metadataServiceUri {text!r} has no scheme: {REMEDY}")
    scheme, _, layout = prefix.lower().partition("+")
    if scheme not in SCHEMES:
        raise ConfigurationError(f"metadataServiceUri {text!r}: scheme {scheme!r} is unknown: {REMEDY}")
    if layout and scheme != "zk":
        raise ConfigurationError(f"metadataServiceUri {text!r}: only zk has layouts: use {scheme}://")
    options = {}
    if scheme in OPTIONS:
        rest, _, query = rest.partition("?")
        options = _options(text, scheme, query)
    authority, _, path = rest.partition("/")
    hosts = tuple(host.strip() for host in authority.replace(";", ",").split(",") if host.strip())
    path = "/" + path.strip("/")
    if scheme == "lmdb":
        if hosts or path == "/":
            raise ConfigurationError(f"metadataServiceUri {text!r} needs an absolute directory: lmdb:///var/lib/bookie")
    elif not hosts:
        raise ConfigurationError(f"metadataServiceUri {text!r} names no host: {REMEDY}")
    elif scheme in {"zk", "etcd", "etcds"} and path == "/":
        raise ConfigurationError(f"metadataServiceUri {text!r} names no ledgers root: append {ROOT_DEFAULT}")
    elif scheme in {"etcd", "etcds"}:
        hosts = tuple(host if _port(host) else f"{host}:{ETCD_PORT}" for host in hosts)
    elif scheme in OPTIONS and (len(hosts) > 1 or path != "/"):
        raise ConfigurationError(f"metadataServiceUri {text!r} is not {scheme}://host:port")
    elif scheme in OPTIONS and not hosts[0].rpartition(":")[2].isdigit():
        raise ConfigurationError(f"metadataServiceUri {text!r} names no port: append that bookie's adminPort, as :3182")
    return MetadataUri(scheme, None if layout in {"", "null"} else layout, hosts, path, options)


def _options(text: str, scheme: str, query: str) -> dict[str, str]:
    found = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in found.items():
        if name not in OPTIONS[scheme] or not value:
            known = ", ".join(f"{one}={'NAME' if one == 'user' else 'FILE'}" for one in OPTIONS[scheme])
            raise ConfigurationError(f"metadataServiceUri {text!r}: {name}={value} is not one of {known}")
    if ("certificate" in found) != ("key" in found):
        raise ConfigurationError(f"metadataServiceUri {text!r}: certificate and key come together; name both")
    if ("user" in found) != ("password" in found):
        raise ConfigurationError(f"metadataServiceUri {text!r}: user and password come together; name both")
    return found


def _port(host: str) -> str:
    """Return the port of `host:port`, which may be an IPv6 address in brackets, or "" if it names none."""
    after = host.rpartition("]")[2]
    return after.rpartition(":")[2] if ":" in after else ""


def uri_from_zookeeper_keys(servers: str, root: str = ROOT_DEFAULT, layout: str = "null") -> str:
    """Return the URI that corresponds to the older keys zkServers, zkLedgersRootPath and ledgerManagerType."""
    return f"zk+{layout}://{servers.replace(',', ';')}/{root.strip('/')}"
