"""The metadata driver for etcd: the keys of Apache BookKeeper's own driver (`metadata-drivers/etcd`) below one scope.

    <scope>                              exists where a cluster was initialized
    layout                               the ledger manager, as in ZooKeeper's LAYOUT
    instanceid                           the instance id
    cookies/<bookie id>                  text of its VERSION files
    bookies/writable/<id>                exists under the bookie's lease; the value is ours: its service info
    bookies/readonly/<id>
    ledgers/<UUID of the ledger id>      ledger metadata, as in ZooKeeper
    buckets/<3 digits>                   128 counters for new ledger ids; the number of puts counts

Logs and everything about replication have the keys of `key_value`, because Apache BookKeeper's driver has none.
"""

import uuid

from bookie.errors import ClusterNotInitialized, IllegalOperation, MetadataSerializationError
from bookie.metadata.etcd.store import EtcdStore
from bookie.metadata.key_value.driver import INSTANCE, LEDGERS, KeyValueCluster, KeyValueDriver, KeyValueLedgers

__all__ = ["EtcdDriver"]

LAYOUT_KEY = "layout"
LAYOUT = b"2\norg.apache.bookkeeper.metadata.etcd.EtcdLedgerManagerFactory:0"
FOLDERS = ("cookies", "bookies", "bookies/writable", "bookies/readonly", "ledgers", "buckets", "underreplication")
"""Keys that Apache BookKeeper's driver creates with a cluster, with empty values."""
REGISTERED = ("bookies/writable/", "bookies/readonly/")
BUCKET = "buckets/000"
"""The counter that we use. Its ids are the smallest, and Apache BookKeeper's driver, which takes one of 128 in turn,
counts in the same way."""
ID_BITS = 64


class EtcdCluster(KeyValueCluster):
    """The keys of the cluster."""

    def __init__(self, store: EtcdStore) -> None:
        super().__init__(store)
        self._etcd = store

    def initialize(self) -> str:
        instance_id = str(uuid.uuid4())
        values = {LAYOUT_KEY: LAYOUT, INSTANCE: instance_id.encode(), **dict.fromkeys(FOLDERS, b"")}
        if not self._etcd.create_all(values):
            raise IllegalOperation("the metadata store already holds a cluster")
        return instance_id

    def destroy(self) -> None:
        for prefix in REGISTERED:
            for key in self._etcd.keys(prefix, limit=1):
                bookie_id = key.rpartition("/")[2]
                raise IllegalOperation(f"bookie {bookie_id} is registered: stop all bookies first")
        self._etcd.delete_all()

    def instance_id(self) -> str | None:
        layout = self._etcd.get(LAYOUT_KEY)
        if layout is None:
            raise ClusterNotInitialized("the metadata store holds no cluster: initialize it first")
        if layout.value.strip() != LAYOUT:
            raise MetadataSerializationError(f"layout {layout.value!r} is not {LAYOUT!r}")
        return super().instance_id()


class EtcdLedgers(KeyValueLedgers):
    """The ledgers: a key is a UUID whose lower half is the ledger's id, and whose upper half is 0."""

    def new_id(self) -> int:
        return self._store.increment(BUCKET) + 1

    def _key(self, ledger_id: int) -> str:
        return f"{LEDGERS}{uuid.UUID(int=ledger_id)}"

    def _id(self, key: str) -> int | None:
        try:
            number = uuid.UUID(key.removeprefix(LEDGERS)).int
        except ValueError:
            return None
        return number if number >> ID_BITS == 0 else None


class EtcdDriver(KeyValueDriver):
    """All parts of a `MetadataDriver` in etcd."""

    def __init__(self, store: EtcdStore, *, session_timeout_s: float) -> None:
        super().__init__(store, session_timeout_s=session_timeout_s)
        self.cluster = EtcdCluster(store)
        self.ledgers = EtcdLedgers(store, self._watcher)
