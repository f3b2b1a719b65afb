"""Open the metadata store that a URI names. Only this module knows all stores, and no module below imports it."""

from bookie.metadata.driver import MetadataDriver
from bookie.metadata.uri import parse_uri

SESSION_TIMEOUT_MS = 10_000


def open_driver(
    uri: str, *, session_timeout_ms: int = SESSION_TIMEOUT_MS, secure: bool = False, create: bool = True
) -> MetadataDriver:
    """Return the driver for a metadata service URI, not yet started. Only the modules of its store are imported.

    Args:
        uri: The metadata service URI; `bookie.metadata.uri` describes its forms.
        session_timeout_ms: The timeout of the session with the store, in milliseconds.
        secure: Whether new ZooKeeper nodes are accessible to their creator only.
        create: Whether an embedded store is created where there is none, as bookies do. Without it, the start of the
            driver raises IllegalOperation.

    Raises:
        ConfigurationError: The URI is invalid.
    """
    where = parse_uri(uri)
    session_timeout_s = session_timeout_ms / 1000
    if where.scheme == "zk":
        from bookie.metadata.zookeeper.driver import ZooKeeperDriver  # noqa: PLC0415

        return ZooKeeperDriver(where, session_timeout_s=session_timeout_s, secure=secure)
    from bookie.metadata.key_value.driver import KeyValueDriver  # noqa: PLC0415

    if where.scheme == "lmdb":
        from bookie.metadata.key_value.embedded import EmbeddedStore  # noqa: PLC0415

        return KeyValueDriver(EmbeddedStore(where.path, create=create), session_timeout_s=session_timeout_s)
    option = where.options.get
    if where.scheme in {"etcd", "etcds"}:
        from bookie.metadata.etcd.driver import EtcdDriver  # noqa: PLC0415
        from bookie.metadata.etcd.endpoints import EtcdAccess  # noqa: PLC0415
        from bookie.metadata.etcd.store import EtcdStore  # noqa: PLC0415

        login = EtcdAccess(where.scheme == "etcds", *map(option, ("ca", "certificate", "key", "user", "password")))
        etcd = EtcdStore(where.hosts, where.path, login, session_timeout_s=session_timeout_s)
        return EtcdDriver(etcd, session_timeout_s=session_timeout_s)
    from bookie.admin_port.channel import AdminAccess  # noqa: PLC0415
    from bookie.metadata.key_value.remote import RemoteStore  # noqa: PLC0415

    access = AdminAccess(where.scheme == "grpcs", option("ca"), option("certificate"), option("key"), option("token"))
    store = RemoteStore(where.hosts[0], access, session_timeout_s=session_timeout_s)
    return KeyValueDriver(store, session_timeout_s=session_timeout_s)
