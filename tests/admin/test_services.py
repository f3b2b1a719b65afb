"""The services of the admin port on a real bookie: reports are true, and requests take effect and are audited."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.client import ChannelV3, Digest
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, Segment
from bookie.pb import bookie_service_pb2 as pb
from bookie.pb import garbage_service_pb2 as gc_pb
from bookie.pb import metrics_service_pb2 as metrics_pb
from bookie.pb import stored_service_pb2 as stored_pb
from bookie.pb.bookie_service_pb2_grpc import BookieStub
from bookie.pb.garbage_service_pb2_grpc import GarbageCollectionStub
from bookie.pb.metrics_service_pb2_grpc import MetricsStub
from bookie.pb.stored_service_pb2_grpc import StoredStub
from bookie_admin.roles import METHODS, Role
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

CALL_S = 60.0
PASSWORD = b"secret"
DIGEST = Digest.of(password=PASSWORD)
Bookies = Callable[..., list[BookieProcess]]


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookieProcess]:
    """A bookie with an embedded metadata store; each test restores its state."""
    directory = tmp_path_factory.mktemp("bookie")
    one = BookieProcess(directory, f"lmdb://{directory}/metadata", {"advertisedAddress": "127.0.0.1"}).start()
    yield one
    assert one.stop() == 0


@pytest.fixture(scope="module")
def channel(bookie: BookieProcess) -> Iterator[Any]:
    """A channel to its admin port."""
    with open_channel(bookie.admin, AdminAccess()) as one:
        yield one


@pytest.fixture(scope="module")
def driver(bookie: BookieProcess) -> Iterator[MetadataDriver]:
    """A driver of its metadata store."""
    one = open_driver(f"grpc://{bookie.admin}")
    one.start()
    yield one
    one.stop()


def stub_of(kind: Any, channel: Any) -> Any:
    """Return a generated stub."""
    return kind(channel)


def write_ledger(bookie: BookieProcess, driver: MetadataDriver, entries: int) -> int:
    """Write a ledger on this bookie alone; return its id."""
    ledger = driver.ledgers.new_id()
    metadata = LedgerMetadata(
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        segments=(Segment(0, (bookie.id,)),),
        digest_type=DigestType.CRC32C,
        password=PASSWORD,
    )
    driver.ledgers.create(ledger, metadata)
    with ChannelV3.connect(*bookie.address) as data:
        for entry in range(entries):
            data.add(ledger, entry, b"entry %d" % entry, digest=DIGEST, lac=entry - 1, length=8 * (entry + 1))
    return ledger


def test_a_bookie_tells_of_itself(bookie: BookieProcess, channel: Any, driver: MetadataDriver) -> None:
    """Identity, state, disks and configuration; the read-only switch as a watcher sees it; the audit log."""
    stub = stub_of(BookieStub, channel)
    info = stub.GetInfo(pb.GetInfoRequest(), timeout=CALL_S)
    assert (info.bookie_id, info.instance_id) == (bookie.id, driver.cluster.instance_id())
    assert (info.state.state, list(info.features)) == ("writable", ["batchRead", "bookieLoad", "writeClose"])
    assert "bookieHost" in info.cookie
    assert {disk.kind for disk in info.state.disks} >= {"ledger", "journal"}
    assert all(disk.total_bytes > disk.free_bytes > 0 for disk in info.state.disks)
    assert [(end.host, end.port) for end in info.endpoints if end.id == "bookie"] == [bookie.address]
    keys = stub.GetConfiguration(pb.GetConfigurationRequest(), timeout=CALL_S).keys
    assert (keys["bookiePort"], keys["journalDirectories"]) == (str(bookie.port), str(bookie.journal))
    watched = stub.Watch(pb.WatchStateRequest(), timeout=CALL_S)
    assert next(watched).state == "writable"
    assert stub.SetReadOnly(pb.SetReadOnlyRequest(read_only=True), timeout=CALL_S).read_only_reasons == ["operator"]
    assert next(watched).state == "read-only"
    assert not stub.RunSanityTest(pb.RunSanityTestRequest(), timeout=CALL_S).passed
    stub.SetReadOnly(pb.SetReadOnlyRequest(read_only=False), timeout=CALL_S)
    assert next(watched).state == "writable"
    watched.cancel()
    assert stub.RunSanityTest(pb.RunSanityTestRequest(), timeout=CALL_S).passed
    said = [line for line in bookie.log_text().splitlines() if "msg=audit" in line]
    assert "caller=token:own" in said[0]
    assert 'request="read_only: true"' in said[0]
    assert "action=Bookie/SetReadOnly" in said[0]
    assert sum("GetInfo" in line for line in said) == 0


def test_log_levels(bookie: BookieProcess, channel: Any) -> None:
    """A level is set and reset at run time; an unknown logger and an unknown level are refused."""
    stub = stub_of(BookieStub, channel)
    levels = stub.SetLogLevel(pb.SetLogLevelRequest(level="error"), timeout=CALL_S).levels
    assert levels[""] == "error"
    levels = stub.SetLogLevel(pb.SetLogLevelRequest(logger="bookie.server.mode", level="info"), timeout=CALL_S).levels
    assert levels["bookie.server.mode"] == "info"
    stub.SetReadOnly(pb.SetReadOnlyRequest(read_only=True), timeout=CALL_S)
    assert "the mode has changed" in bookie.log_text()
    inherited = stub.SetLogLevel(pb.SetLogLevelRequest(logger="bookie.server.mode"), timeout=CALL_S).levels
    assert "bookie.server.mode" not in inherited
    for logger, level, says in (
        ("bookie.server.mod", "info", "did you mean bookie.server.mode"),
        ("", "", "use one of debug"),
    ):
        with pytest.raises(grpc.RpcError, match=says):
            stub.SetLogLevel(pb.SetLogLevelRequest(logger=logger, level=level), timeout=CALL_S)
    assert stub.GetLogLevels(pb.GetLogLevelsRequest(), timeout=CALL_S).levels[""] == "error"
    stub.SetReadOnly(pb.SetReadOnlyRequest(read_only=False), timeout=CALL_S)
    stub.SetLogLevel(pb.SetLogLevelRequest(level="debug"), timeout=CALL_S)


def test_entries_where_they_are(bookie: BookieProcess, channel: Any, driver: MetadataDriver) -> None:
    """A ledger's entries are read and verified; after a flush they are located in an entry log."""
    ledger = write_ledger(bookie, driver, 10)
    stub, running = stub_of(StoredStub, channel), stub_of(BookieStub, channel)
    known = stub.GetLedger(stored_pb.GetLedgerRequest(ledger=ledger), timeout=CALL_S)
    assert [(one.first, one.last) for one in known.entries] == [(0, 9)]
    assert (known.metadata.state, known.metadata.digest_type, known.last_confirmed) == ("open", "CRC32C", 8)
    wanted = stored_pb.EntriesRequest(ledger=ledger, first=3, last=5)
    assert list(stub.LocateEntries(wanted, timeout=CALL_S)) == []
    read = list(stub.ReadEntries(wanted, timeout=CALL_S))
    assert [(one.entry, one.payload, one.digest_ok) for one in read] == [
        (entry, b"entry %d" % entry, True) for entry in (3, 4, 5)
    ]
    before = running.GetLastMarks(pb.GetLastMarksRequest(), timeout=CALL_S).marks
    after = running.Flush(pb.FlushRequest(), timeout=CALL_S).marks
    assert [(one.file_id, one.offset) for one in after] > [(one.file_id, one.offset) for one in before]
    places = [one for part in stub.LocateEntries(wanted, timeout=CALL_S) for one in part.places]
    assert [one.entry for one in places] == [3, 4, 5]
    logs = stub.ListEntryLogs(stored_pb.ListEntryLogsRequest(), timeout=CALL_S).logs
    (log,) = [one for one in logs if one.log_id == places[0].log_id]
    assert Path(log.path).stat().st_size == log.bytes
    request = stored_pb.ListLedgersOfLogRequest(directory=log.directory, log_id=log.log_id)
    for active in (True, False):
        held = [one for part in stub.ListLedgersOfLog(request, timeout=CALL_S) for one in part.ledgers]
        assert [one.active for one in held if one.ledger == ledger] == [active]
        if active:
            driver.ledgers.delete(ledger)
    unchecked = next(stub.ReadEntries(stored_pb.EntriesRequest(ledger=ledger, last=-1), timeout=CALL_S))
    assert not unchecked.digest_ok
    assert "does not have the ledger" in unchecked.problem


def test_an_entry_that_is_not_what_it_should_be(bookie: BookieProcess, channel: Any, driver: MetadataDriver) -> None:
    """An entry with an invalid digest is reported, and the others are read."""
    ledger = write_ledger(bookie, driver, 1)
    with ChannelV3.connect(*bookie.address) as data:
        other = Digest(DIGEST.type, DIGEST.master_key, Digest.of(DigestType.CRC32, PASSWORD).digester)  # type: ignore[arg-type]
        data.add(ledger, 1, b"bad", digest=other, lac=0, length=11)
        data.add(ledger, 2, b"good", digest=DIGEST, lac=1, length=15)
    read = stub_of(StoredStub, channel).ReadEntries(stored_pb.EntriesRequest(ledger=ledger, last=-1), timeout=CALL_S)
    assert [(one.digest_ok, "digest" in one.problem) for one in read] == [(True, False), (False, True), (True, False)]


def test_write_close(bookie: BookieProcess, channel: Any, driver: MetadataDriver) -> None:
    """There is a result for each ledger; one that does not exist has a problem of its own."""
    ledger = write_ledger(bookie, driver, 1)
    request = pb.WriteCloseLedgersRequest(ledgers=[ledger, 4711])
    reply = stub_of(BookieStub, channel).WriteClose(request, timeout=CALL_S)
    assert [(one.ledger, one.announced) for one in reply.ledgers] == [(ledger, True), (4711, False)]
    assert "4711" in reply.ledgers[1].problem
    with pytest.raises(grpc.RpcError, match="name 1 to 10000"):
        stub_of(BookieStub, channel).WriteClose(pb.WriteCloseLedgersRequest(), timeout=CALL_S)


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        (lambda stub: stub.GetLedger(stored_pb.GetLedgerRequest(ledger=-1)), "INVALID_ARGUMENT", "is negative"),
        (
            lambda stub: stub.GetLedger(stored_pb.GetLedgerRequest(ledger=99)),
            "NOT_FOUND",
            "ledger 99 is neither on this bookie",
        ),
        (lambda stub: next(stub.ReadEntries(stored_pb.EntriesRequest(ledger=99, last=-1))), "NOT_FOUND", "not known"),
        (lambda stub: next(stub.LocateEntries(stored_pb.EntriesRequest(first=5, last=4))), "INVALID_ARGUMENT", "range"),
        (lambda stub: next(stub.ListLedgersOfLog(stored_pb.ListLedgersOfLogRequest(log_id=9))), "NOT_FOUND", "9.log"),
        (
            lambda stub: next(stub.ListLedgersOfLog(stored_pb.ListLedgersOfLogRequest(directory=9))),
            "NOT_FOUND",
            "from 0",
        ),
    ],
)
def test_bad_questions(channel: Any, call: Callable[[Any], Any], code: str, says: str) -> None:
    """One line says what is wrong, with a fitting status."""
    with pytest.raises(grpc.RpcError, match=says) as refused:
        call(stub_of(StoredStub, channel))
    assert refused.value.code() is grpc.StatusCode[code]


def test_metrics_as_text_and_samples(channel: Any) -> None:
    """The same families as text and as samples, filtered by name, and again at each interval."""
    stub = stub_of(MetricsStub, channel)
    text = stub.GetText(metrics_pb.GetMetricsRequest(names=["bookie_journal_*"]), timeout=CALL_S).text
    samples = stub.GetSamples(metrics_pb.GetMetricsRequest(names=["bookie_journal_*"]), timeout=CALL_S)
    names = [family.name for family in samples.families]
    assert names
    assert all(name.startswith("bookie_journal_") for name in names)
    assert [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")] == names
    assert len(stub.GetSamples(metrics_pb.GetMetricsRequest(), timeout=CALL_S).families) > len(names)
    watched = stub.Watch(metrics_pb.WatchMetricsRequest(interval_ms=100), timeout=CALL_S)
    first, second = next(watched), next(watched)
    assert second.at_ms > first.at_ms
    watched.cancel()
    with pytest.raises(grpc.RpcError, match="interval_ms=0 is out of range"):
        next(stub.Watch(metrics_pb.WatchMetricsRequest(), timeout=CALL_S))


def test_garbage_collection_is_followed(channel: Any) -> None:
    """A watcher sees the effect of requests."""
    stub = stub_of(GarbageCollectionStub, channel)
    watched = stub.Watch(gc_pb.WatchGarbageRequest(), timeout=CALL_S)
    assert not next(watched).major_suspended
    stub.Suspend(gc_pb.CompactionKinds(major=True), timeout=CALL_S)
    while not next(watched).major_suspended:
        pass
    stub.Resume(gc_pb.CompactionKinds(major=True), timeout=CALL_S)
    watched.cancel()


def test_health_and_reflection(channel: Any) -> None:
    """What tools expect of a gRPC server; each of our methods requires a role."""
    health = stub_of(health_pb2_grpc.HealthStub, channel)
    for name in ("", "bookie.admin.v1.Bookie"):
        answer = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=CALL_S)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflected = ProtoReflectionDescriptorDatabase(channel)
    names = set(reflected.get_services())
    assert {"bookie.admin.v1.Bookie", "bookie.admin.v1.Stored", "grpc.health.v1.Health"} <= names
    operate = {
        "Bookie/Flush", "Bookie/RunSanityTest", "Bookie/SetLogLevel", "Bookie/SetReadOnly", "Bookie/WriteClose",
        "Bookie/LiftQuarantine", "Scrub/Pause", "Scrub/Resume", "Scrub/SetPace", "Scrub/Start",
        "GarbageCollection/Force", "GarbageCollection/Resume", "GarbageCollection/Suspend",
        "MetadataStore/CloseSession", "MetadataStore/Delete", "MetadataStore/Increment", "MetadataStore/Put",
        "MetadataStore/OpenSession", "MetadataStore/KeepAlive",
    }  # fmt: skip
    found = set()
    for name in names:
        for file in [reflected.FindFileContainingSymbol(name)]:
            for service in file.service:
                methods = [f"{name}/{method.name}" for method in service.method if name.endswith(service.name)]
                assert set(methods) <= set(METHODS)
                found |= {
                    one.rpartition(".")[2] for one in methods if (METHODS[one].role or Role.METRICS) >= Role.OPERATE
                }
    assert found == operate
