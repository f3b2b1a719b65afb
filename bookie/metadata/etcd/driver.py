"""The metadata driver for etcd: the keys of Apache BookKeeper's own driver (`metadata-drivers/etcd`) below one scope.

    <scope>                              exists where a cluster was initialized
    layout                               the ledger manager, as in ZooKeeper's LAYOUT
    instanceid                           the instance id
    cookies/<bookie id>                  text of its VERSION files
    bookies/writable/<id>                exists under the bookie's lease; the value is ours: its service info
    bookies/readonly/<id>
    ledgers/<UUID of the ledger id>      ledger metadata, as in ZooKeeper
    buckets/<3 digits>                   128 counters for new ledger ids; the number of puts counts
    first-bucket                         the number of the counter that we use; 0 without it; ours
    sessions/<lease>                     the mark of a session (`etcd.store`); ours

Logs and everything about replication have the keys of `key_value`, because Apache BookKeeper's driver has none.
"""

import struct
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from bookie.errors import ClusterNotInitialized, IllegalOperation, LedgerIdOverflow, MetadataSerializationError
from bookie.metadata.etcd.numbered import NumberedKeys, pages
from bookie.metadata.etcd.store import EtcdStore
from bookie.metadata.key_value.driver import INSTANCE, LEDGERS, KeyValueCluster, KeyValueDriver, KeyValueLedgers
from bookie.metadata.key_value.keys import Item
from bookie.metadata.key_value.replication import LOCKS, MARKS, KeyValueReplication, numbered_key
from bookie.metadata.watching import Watcher

__all__ = ["EtcdDriver", "uuids"]

LAYOUT_KEY = "layout"
LAYOUT = b"2\norg.apache.bookkeeper.metadata.etcd.EtcdLedgerManagerFactory:0"
FOLDERS = ("cookies", "bookies", "bookies/writable", "bookies/readonly", "ledgers", "buckets", "underreplication")
"""Keys that Apache BookKeeper's driver creates with a cluster, with empty values."""
REGISTERED = ("bookies/writable/", "bookies/readonly/")
BUCKETS = "buckets/"
BUCKETS_END = 128
"""Apache BookKeeper's driver takes one after another. We take one, usually the first one, whose ids are the smallest,
and count in the same way."""
FIRST_BUCKET = "first-bucket"
COUNT_BITS = 56
VALUES = 100
"""How many marks or locks one request reads."""
TAKEN_MAX = 100_000
TAKERS = 16


class EtcdCluster(KeyValueCluster):
    """The keys of the cluster."""

    def __init__(self, store: EtcdStore) -> None:
        super().__init__(store)
        self._etcd = store

    def initialize(self, instance_id: str | None = None) -> str:
        instance_id = instance_id or str(uuid.uuid4())
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

    def __init__(self, store: EtcdStore, watcher: Watcher) -> None:
        super().__init__(store, watcher)
        self._etcd = store
        self._keys = NumberedKeys(
            store.full(f"{LEDGERS}00000000-0000-0000-"),
            b"[0-9a-f]{4}-[0-9a-f]{12}",
            lambda ledger: store.full(self._key(ledger)),
            uuids,
        )
        self._bucket: int | None = None  # as it was read; it only changes while nobody uses the cluster

    def new_id(self) -> int:
        bucket = self._our_bucket()
        return bucket << COUNT_BITS | self._store.increment(_bucket_key(bucket)) + 1

    def last_id(self) -> int:
        counts = self._etcd.counts(BUCKETS)
        return max((int(key.removeprefix(BUCKETS)) << COUNT_BITS | count for key, count in counts.items()), default=-1)

    def leave_ids(self, last: int) -> None:
        """Go on after `last`. etcd counts puts, so this takes a few numbers, or goes to the next bucket."""
        bucket = self._our_bucket()
        count = self._etcd.counts(BUCKETS).get(_bucket_key(bucket), 0)
        left = last - (bucket << COUNT_BITS | count)
        if left <= 0:
            return
        if bucket == last >> COUNT_BITS and left <= TAKEN_MAX:
            with ThreadPoolExecutor(TAKERS, "ledger-ids") as pool:
                for _ in pool.map(lambda _: self.new_id(), range(left)):
                    pass
            return
        bucket = (last >> COUNT_BITS) + 1
        if bucket >= BUCKETS_END:
            raise LedgerIdOverflow(f"no ledger id is left after {last}")
        found = self._store.get(FIRST_BUCKET)
        self._store.put(FIRST_BUCKET, b"%d" % bucket, found.version if found else None)
        self._bucket = bucket

    def _our_bucket(self) -> int:
        if self._bucket is None:
            found = self._store.get(FIRST_BUCKET)
            self._bucket = int(found.value) if found else 0
        return self._bucket

    def _key(self, ledger_id: int) -> str:
        return f"{LEDGERS}{uuid.UUID(int=ledger_id)}"

    def ranges(self) -> Iterator[list[int]]:
        return pages(self._etcd, self._keys)


class EtcdReplication(KeyValueReplication):
    """Marks and locks, of which there may be as many as ledgers."""

    def __init__(self, store: EtcdStore, watcher: Watcher) -> None:
        super().__init__(store, watcher)
        self._etcd = store
        self._keys = {prefix: _digits(store, prefix) for prefix in (MARKS, LOCKS)}

    def numbers(self, prefix: str) -> Iterator[list[int]]:
        return pages(self._etcd, self._keys[prefix])

    def items(self, prefix: str) -> Iterator[list[tuple[int, Item]]]:
        keys = self._keys[prefix]
        for page in self.numbers(prefix):
            for at in range(0, len(page), VALUES):
                some = {keys.key(number): number for number in page[at : at + VALUES]}
                found = self._etcd.items(min(some), max(some))
                yield [(some[key], item) for key, item in found if key in some]


class EtcdDriver(KeyValueDriver):
    """All parts of a `MetadataDriver` in etcd."""

    def __init__(self, store: EtcdStore, *, session_timeout_s: float) -> None:
        super().__init__(store, session_timeout_s=session_timeout_s)
        self.cluster = EtcdCluster(store)
        self.ledgers = EtcdLedgers(store, self._watcher)
        self.replication = EtcdReplication(store, self._watcher)


def _bucket_key(bucket: int) -> str:
    return f"{BUCKETS}{bucket:03d}"


def uuids(keys: Sequence[bytes]) -> Sequence[int]:
    """Return the lower halves of the UUIDs at the ends of keys."""
    digits = b"".join([key[-17:] for key in keys]).replace(b"-", b"")
    return struct.unpack(f">{len(keys)}Q", bytes.fromhex(digits.decode()))


def _digits(store: EtcdStore, prefix: str) -> NumberedKeys:
    """Return the keys with this prefix that end with 19 digits."""
    return NumberedKeys(
        store.full(prefix),
        b"[0-9]{19}",
        lambda number: store.full(numbered_key(prefix, number)),
        lambda keys: [int(key[-19:]) for key in keys],
    )
