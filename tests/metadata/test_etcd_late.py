"""Requests that a member of etcd carries out late, and answers that are lost: nothing is brought back or done twice."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import grpc
import pytest

from bookie.errors import MetadataStoreError
from bookie.metadata.etcd.endpoints import Endpoints
from bookie.metadata.etcd.store import EtcdStore
from bookie.metadata.key_value.keys import Item, KeyExists
from bookie.pb import etcd_pb2 as pb
from tests.fixtures.etcd import EtcdCluster, EtcdMember

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")


@pytest.mark.thorough
def test_a_delete_that_arrives_late_deletes_nothing_new(
    three_etcds: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member hangs with the request to delete any version of a key: what was created meanwhile stays."""
    first, second, _ = three_etcds.members
    call = Endpoints.call

    def hang(self: Endpoints, method: str, request: object, timeout: float) -> object:
        if method == "KV/Txn":
            first.freeze()
        return call(self, method, request, timeout)

    with closing(Stored(second)) as others, closing(Stored(first, session_timeout_s=1.0)) as late:
        for number in range(6):
            key = f"key-{number}"
            others.store.put(key, b"old", None)
            assert late.store.get(key) is not None
            with monkeypatch.context() as patch:
                patch.setattr(Endpoints, "call", hang)
                with pytest.raises(MetadataStoreError):
                    late.store.delete(key)
            others.store.delete(key)
            created = others.store.put(key, b"new", None)
            first.thaw()
            for _ in range(20):  # the member answers these after what came in while it hung, or nearly so
                late.lookup(key)
            assert others.store.get(key) == created


@pytest.mark.thorough
def test_a_create_that_arrives_late_brings_nothing_back(
    three_etcds: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member hangs with the request to create a key: another member creates it, and it is deleted for good."""
    first, second, _ = three_etcds.members
    call = Endpoints.call
    hung = threading.Event()

    def hang(self: Endpoints, method: str, request: pb.TxnRequest, timeout: float) -> object:
        if method == "KV/Txn" and not hung.is_set() and any(one.request_put.value == b"new" for one in request.success):
            hung.set()
            first.freeze()
        return call(self, method, request, timeout)

    monkeypatch.setattr(Endpoints, "call", hang)
    hung.set()
    with closing(Stored(second)) as others, closing(Stored(first)) as direct:
        for number in range(6):
            key = f"created-{number}"
            with closing(Stored(first, second, session_timeout_s=6.0)) as late:
                assert late.store.get(key) is None
                hung.clear()
                created = late.store.put(key, b"new", None)
                assert hung.is_set()
                assert others.store.get(key) == created
                others.store.delete(key)
                first.thaw()
                for _ in range(20):  # the member answers these after what came in while it hung, or nearly so
                    direct.lookup(key)
                assert others.store.get(key) is None
                assert late.store.put(key, b"again", None).value == b"again"


def test_creates_of_several_threads(three_etcds: EtcdCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are lost and the session's mark is put again under others: each key is created once, by one thread."""
    call, turns = Endpoints.call, itertools.count()

    def lose(self: Endpoints, method: str, request: object, timeout: float) -> object:
        reply = call(self, method, request, timeout)
        if method == "KV/Txn" and next(turns) % 5 == 0:
            raise LostAnswer
        return reply

    with closing(Stored(*three_etcds.members)) as one, ThreadPoolExecutor(8) as pool:
        monkeypatch.setattr(Endpoints, "call", lose)

        def create(number: int) -> bool:
            try:
                one.store.put(f"several-{number // 4}", b"%d" % number, None)
            except KeyExists:
                return False
            return True

        made = list(pool.map(create, range(160)))
        assert [sum(made[at : at + 4]) for at in range(0, 160, 4)] == [1] * 40
        monkeypatch.undo()
        sessions = one.store.keys("sessions/")
        assert len(sessions) == 1
    with closing(Stored(*three_etcds.members)) as after:
        assert after.store.keys("sessions/") == []


class LostAnswer(grpc.RpcError):  # type: ignore[misc]
    """A call whose answer was lost."""

    def code(self) -> grpc.StatusCode:
        """Return what gRPC says of it."""
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        """Return its text."""
        return "the answer was lost"


class Stored:
    """A started store that knows these members."""

    def __init__(self, *members: EtcdMember, session_timeout_s: float = 20.0) -> None:
        addresses = tuple(member.address for member in members)
        self.store = EtcdStore(addresses, "/late", session_timeout_s=session_timeout_s)
        self.store.start()

    def lookup(self, key: str) -> Item | None:
        """Return the key's value, or None if there is none or the member does not answer."""
        try:
            return self.store.get(key)
        except MetadataStoreError:
            return None

    def close(self) -> None:
        """Stop it."""
        self.store.stop()
