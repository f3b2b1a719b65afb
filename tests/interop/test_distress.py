"""A bookie that distrusts its own data, one that is asked too much, and frames that are too large: Java's and ours.

One Java bookie serves all of these tests: it starts as after a crash without a journal, with short queues.
"""

import threading
from collections.abc import Callable, Iterator

import pytest

from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from bookie.pb import wire_pb2 as pb
from tests.interop.conftest import Standing
from tests.interop.proxy import read_frame
from tests.interop.raw import CLOSED, Wire
from tests.interop.statuses import (
    DIGEST,
    KEY,
    OPERATIONS,
    PRIORITY,
    Bookie,
    add,
    force,
    limbo,
    read,
    sealed,
    wrong,
)
from tests.reference import wire_v2 as v2

pytestmark = pytest.mark.interop

KINDS = ("java", "ours")
FRAME_MAX = 1 << 16
BURST = 1000
BURSTS_MAX = 20
TOO_MANY_V2 = 106
DISTRUSTED = range(882_000, 882_060)
CRASHED = {"dataIntegrityChecking": "true", "journalWriteData": "false"}
NARROW = {
    "maxBatchReadSize": str(FRAME_MAX // 2),
    "maxPendingAddRequestsPerThread": "20",
    "maxPendingReadRequestsPerThread": "20",
    "nettyMaxFrameSizeBytes": str(FRAME_MAX),
    "numReadWorkerThreads": "1",
}


@pytest.fixture(scope="module")
def distrusted(shared_cluster_uri: str) -> Iterator[MetadataDriver]:
    """Ledgers of both bookies that nobody can recover, because two more bookies that they name do not exist."""
    ensemble = ("distressed-java", "distressed-ours", "127.0.0.1:1", "127.0.0.1:2")
    metadata = LedgerMetadata(
        ensemble_size=4,
        write_quorum=4,
        ack_quorum=3,
        segments=(Segment(0, ensemble),),
        state=LedgerState.OPEN,
        digest_type=DigestType.CRC32C,
        password=b"pw",
    )
    driver = open_driver(shared_cluster_uri)
    driver.start()
    for number in DISTRUSTED:
        driver.ledgers.create(number, metadata)
    yield driver
    for number in DISTRUSTED:
        driver.ledgers.delete(number)
    driver.stop()


Port = Callable[[str], int]


@pytest.fixture(scope="module")
def java(
    standing: Standing, shared_cluster_uri: str, distrusted: MetadataDriver, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], int]:
    """The port of the Java bookie, which finds the mark of a run that was killed."""
    current = tmp_path_factory.mktemp("java") / "current"
    current.mkdir()
    (current / "DIRTY").touch()
    named = {"bookieId": "distressed-java", "ledgerDirectories": str(current.parent)}
    return lambda: standing("java", shared_cluster_uri, **CRASHED, **NARROW, **named).port


@pytest.fixture(scope="module")
def crashed(java: Callable[[], int], standing: Standing, shared_cluster_uri: str) -> Port:
    """Bookies that start after a crash without a journal."""

    def port(kind: str) -> int:
        if kind == "java":
            return java()
        ours = standing(kind, shared_cluster_uri, **CRASHED, bookieId="distressed-ours")
        ours.stop()
        (ours.ledgers / "current" / "DIRTY").touch()
        ours.start()
        return ours.port

    return port


@pytest.fixture(scope="module")
def narrow(java: Callable[[], int], standing: Standing, shared_cluster_uri: str) -> Port:
    """Bookies with short queues and small frames."""
    return lambda kind: java() if kind == "java" else standing(kind, shared_cluster_uri, **NARROW).port


@pytest.mark.parametrize("kind", KINDS)
def test_b17_ledgers_in_limbo(crashed: Port, kind: str) -> None:
    """Nothing is denied, no writer is let in, and recovery may write."""
    assert wrong(Bookie(crashed(kind), DISTRUSTED), kind, limbo()) == []


Exchange = tuple[bytes, bytes]
"""A request, and its refusal."""


def in_v3(number: int, part: pb.AddRequest | pb.ReadRequest | pb.ForceLedgerRequest, priority: int = 0) -> Exchange:
    """Make the refusal in V3 with what upstream puts into it: the ids of the request, and the status twice."""
    operation, name = OPERATIONS[type(part)]
    request = pb.Request(header=pb.BKPacketHeader(version=3, operation=operation, txnId=number))  # type: ignore[arg-type]
    refused = pb.Response(header=request.header, status=pb.ETOOMANYREQUESTS)
    if priority:
        request.header.priority = priority
    getattr(request, name).CopyFrom(part)
    refusal = getattr(refused, name.replace("Request", "Response"))
    refusal.ledgerId, refusal.status = part.ledgerId, pb.ETOOMANYREQUESTS
    if not isinstance(part, pb.ForceLedgerRequest):
        refusal.entryId = part.entryId
    return v2.framed(request.SerializeToString()), v2.framed(refused.SerializeToString())


def in_v2(number: int, op: int, ledger: int, entry: int, flags: int = 0) -> Exchange:
    """Make the refusal in V2 with what upstream puts into it: the ids of the request."""
    body, key = (sealed(ledger, entry), KEY) if op == v2.ADD else (None, KEY if flags & 1 else None)
    batch = {"request_id": number, "count_max": 1, "size_max": 1} if op == v2.BATCH_READ else {}
    request = v2.Request(op, flags=flags, ledger=ledger, entry=entry, key=key, body=body, **batch)
    refusal = v2.Response(op, TOO_MANY_V2, ledger, entry, number if op == v2.BATCH_READ else 0)
    return v2.encode_request(request), v2.encode_response(refusal)


STORED = 883_000
WRITTEN = 883_001
BURSTS: dict[str, tuple[Callable[[int], Exchange], bool]] = {
    "add": (lambda n: in_v3(n, add(WRITTEN, n)), True),
    "add, priority": (lambda n: in_v3(n, add(WRITTEN, n), PRIORITY), False),
    "read": (lambda n: in_v3(n, read(STORED, n)), True),
    "read, priority": (lambda n: in_v3(n, read(STORED, n), PRIORITY), False),
    "read, fence": (lambda n: in_v3(n, read(WRITTEN + 1, n, masterKey=KEY, flag=pb.ReadRequest.FENCE_LEDGER)), False),
    "force": (lambda n: in_v3(n, force(WRITTEN) if n % 2 else add(WRITTEN, n)), True),
    "V2 add": (lambda n: in_v2(n, v2.ADD, WRITTEN, n), True),
    "V2 add, priority": (lambda n: in_v2(n, v2.ADD, WRITTEN, n, v2.HIGH_PRIORITY), False),
    "V2 read": (lambda n: in_v2(n, v2.READ, STORED, n), True),
    "V2 batch read": (lambda n: in_v2(n, v2.BATCH_READ, STORED, n), True),
    "V2 read, fence": (lambda n: in_v2(n, v2.READ, WRITTEN + 1, n, 1), False),
}
"""What is sent, and whether some of it is refused. Forces have adds between them: else there is nothing to wait for."""


def burst(port: int, exchanges: list[Exchange]) -> list[bytes]:
    """Send all requests on one connection as fast as possible, and return the answers."""
    with Wire(port) as wire:
        sender = threading.Thread(target=wire.sock.sendall, args=(b"".join(request for request, _ in exchanges),))
        sender.start()
        answers = [read_frame(wire.sock) for _ in exchanges]
        sender.join()
    return answers


def is_refusal(answer: bytes) -> bool:
    """Return whether a frame in either protocol says that there is too much to do."""
    if answer[4] == v2.V3_HEADER_TAG:
        return pb.Response.FromString(answer[4:]).status == pb.ETOOMANYREQUESTS
    reported = v2.decode_response(answer[4:])
    assert reported is not None
    return reported.code == TOO_MANY_V2


@pytest.mark.parametrize("kind", KINDS)
def test_bursts(narrow: Port, standing: Standing, shared_cluster_uri: str, kind: str) -> None:
    """Both bookies refuse what the queue cannot take, with the same bytes, except for fences and high priority."""
    port = narrow(kind)
    for entry in range(0, BURST, BURST // 10):
        assert Bookie(port).ask(add(STORED, entry)) == 0
    if kind == "ours":
        bookie = standing(kind, shared_cluster_uri, **NARROW)
        bookie.stop()
        bookie.start()  # from an empty cache: reads are queued only for the disk
    for name, (exchange, some) in BURSTS.items():
        exchanges = [exchange(number) for number in range(BURST)]
        odd = {refusal for _, refusal in exchanges[1::2]}
        refused: set[bytes] = set()
        for _ in range(BURSTS_MAX):
            refused = {answer for answer in burst(port, exchanges) if is_refusal(answer)}
            if refused & odd or not some:
                break
        assert bool(refused & odd) == some, name
        assert refused <= {refusal for _, refusal in exchanges}, name


def added(port: int, ledger: int, frame_bytes: int) -> int | str:
    """Return what becomes of an entry whose whole frame has this many bytes."""
    spare = len(v2.encode_request(v2.Request(v2.ADD, key=KEY, body=DIGEST.seal(ledger, 0, b"", lac=-1, length=0))))
    payload = bytes(frame_bytes - spare)
    request = v2.Request(v2.ADD, key=KEY, body=DIGEST.seal(ledger, 0, payload, lac=-1, length=len(payload)))
    assert len(v2.encode_request(request)) == frame_bytes
    with Wire(port) as wire:
        try:
            return wire.ask_v2(request).code
        except ConnectionError:
            return CLOSED


@pytest.mark.parametrize("kind", KINDS)
def test_entries_that_are_too_large(narrow: Port, kind: str) -> None:
    """Both take the largest frame. One byte more costs the connection, and others are served as before."""
    sizes = (FRAME_MAX - 1, FRAME_MAX, FRAME_MAX + 1, 2 * FRAME_MAX, FRAME_MAX)
    answers = [added(narrow(kind), 881_000 + number, size) for number, size in enumerate(sizes)]
    assert answers == [0, 0, CLOSED, CLOSED, 0]
