"""Fills empty metadata stores with the metadata of many ledgers, in large transactions. Threads of a pool."""

import contextlib
import secrets
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kazoo.client import KazooClient

from bookie.metadata import open_driver
from bookie.metadata.etcd.endpoints import Endpoints, EtcdAccess
from bookie.metadata.records.ledger_codec import serialize_ledger
from bookie.metadata.uri import parse_uri
from bookie.metadata.zookeeper.layout import Layout
from bookie.metadata.zookeeper.ledger_paths import ledger_path
from bookie.pb import etcd_pb2 as pb
from perf.metadata_ledgers.steps import METADATA, SESSION_MS

LOADED_AT_ONCE = 100
"""Ledgers in one transaction; etcd takes 128."""
LOADERS = 4
Piece = range


def metadata_bytes() -> bytes:
    """Return what a driver stores for a new ledger, with a token of its own."""
    return serialize_ledger(replace(METADATA, token=secrets.randbelow((1 << 63) - 1) + 1))


def load(uri: str, ledgers: int) -> None:
    """Put the metadata of many ledgers into an empty store."""
    driver = open_driver(uri, session_timeout_ms=SESSION_MS)
    driver.start()
    try:
        driver.cluster.initialize()
        pieces = [range(at, min(at + LOADED_AT_ONCE, ledgers)) for at in range(0, ledgers, LOADED_AT_ONCE)]
        found = parse_uri(uri)
        into = into_etcd if found.scheme.startswith("etcd") else into_zookeeper
        with into(found.hosts, found.path, ledgers) as put, ThreadPoolExecutor(LOADERS) as pool:
            for _ in pool.map(put, pieces):
                pass
        for ledger in (0, ledgers // 2, ledgers - 1):
            assert driver.ledgers.read(ledger).value.segments == METADATA.segments
    finally:
        driver.stop()


@contextlib.contextmanager
def into_etcd(hosts: tuple[str, ...], root: str, _ledgers: int) -> Iterator[Callable[[Piece], None]]:
    """Yield a function that puts a piece of the ledgers into etcd."""
    with contextlib.closing(Endpoints(hosts, EtcdAccess())) as members:

        def put(piece: Piece) -> None:
            keys = {f"{root}/ledgers/{uuid.UUID(int=ledger)}".encode(): metadata_bytes() for ledger in piece}
            puts = [pb.RequestOp(request_put=pb.PutRequest(key=key, value=value)) for key, value in keys.items()]
            members.call("KV/Txn", pb.TxnRequest(success=puts), 60)

        yield put


@contextlib.contextmanager
def into_zookeeper(hosts: tuple[str, ...], root: str, ledgers: int) -> Iterator[Callable[[Piece], None]]:
    """Yield a function that puts a piece of the ledgers into ZooKeeper."""
    client = KazooClient(",".join(hosts), timeout=SESSION_MS / 1000)
    client.start()
    try:
        for parent in dict.fromkeys(_node(root, ledger).rpartition("/")[0] for ledger in range(0, ledgers, 10_000)):
            client.ensure_path(parent)

        def put(piece: Piece) -> None:
            request = client.transaction()
            for ledger in piece:
                request.create(_node(root, ledger), metadata_bytes())
            refused = [one for one in request.commit() if isinstance(one, Exception)]
            assert not refused, refused[0]

        yield put
    finally:
        client.stop()
        client.close()


def _node(root: str, ledger: int) -> str:
    return root + ledger_path(Layout("hierarchical"), ledger)
