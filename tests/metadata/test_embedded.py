"""The embedded store by itself: order, durability, sessions with a scripted clock, and failures to open."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import lmdb
import pytest

from bookie.errors import IncorrectParameter, StartRefused
from bookie.metadata.key_value.embedded import EmbeddedStore, SessionLimits
from bookie.metadata.key_value.keys import KeyAbsent, KeyExists, SessionExpired, StoreFull, VersionConflict

WRITER = """
import sys
from bookie.metadata.key_value.embedded import EmbeddedStore
store = EmbeddedStore(sys.argv[1])
store.start()
store.put("mortal", b"", None, store.session())
number = 0
while True:
    store.put(f"key/{number:06d}", b"x" * 100, None)
    print(number, flush=True)
    number += 1
"""
FULL_FILE = """
import resource, sys
from bookie._fast.base import fatal
from bookie.metadata.key_value.embedded import EmbeddedStore

def put_until_refused(first):
    try:
        for number in range(first, first + 1000):
            store.put(f"key/{number:06d}", b"x" * 4000, None)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")

store = EmbeddedStore(sys.argv[1])
store.start()
store.put("before", b"", None)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
put_until_refused(0)
print(fatal.wait(0))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
put_until_refused(5000)
print(store.get("before") is not None)
"""
FULL_DISK = """
import sys
from bookie._fast.base import fatal
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie.metadata.key_value.keys import StoreFull

store = EmbeddedStore(sys.argv[1])
store.start()
number = 0
try:
    while True:
        store.put(f"key/{number:06d}", b"x" * 4000, None)
        number += 1
except StoreFull as error:
    print(error)
print(fatal.wait(0), len(store.keys("")) == number)
for number in range(10):
    store.delete(f"key/{number:06d}")
print(store.put("key/000000", b"y", None).version)
"""
ROOT = Path(__file__).resolve().parents[2]


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_versions_decide(store: EmbeddedStore) -> None:
    """A key is created at version 0, counts up, and refuses every other expectation."""
    assert store.get("k") is None
    item = store.put("k", b"a", None)
    assert (item.version, item.session) == (0, 0)
    with pytest.raises(KeyExists):
        store.put("k", b"b", None)
    with pytest.raises(VersionConflict, match="at version 0, not 1"):
        store.put("k", b"b", 1)
    changed = store.put("k", b"b", 0)
    assert (changed.version, changed.created_ms) == (1, item.created_ms)
    assert store.get("k") == changed
    with pytest.raises(VersionConflict):
        store.delete("k", 0)
    store.delete("k", 1)
    with pytest.raises(KeyAbsent):
        store.delete("k")
    with pytest.raises(KeyAbsent):
        store.put("k", b"", 1)


def test_keys_come_in_order_and_pages(store: EmbeddedStore) -> None:
    """Keys are sorted by UTF-8 bytes, those under sessions among the others, and a page begins after the last key."""
    names = ["a/é", "a/1", "a/2", "a/3", "b/1", "a", "a0"]
    for number, name in enumerate(names):
        store.put(name, b"", None, store.session() if number % 2 else 0)
    expected = ["a/1", "a/2", "a/3", "a/é"]
    assert store.keys("a/") == expected
    pages, after = [], ""
    while page := store.keys("a/", after, 2):
        pages.append(page)
        after = page[-1]
    assert [name for page in pages for name in page] == expected
    assert store.keys("") == sorted(names, key=str.encode)


def test_counters_survive(tmp_path: Path) -> None:
    """A number is never assigned twice, not even after a restart."""
    taken = []
    for _ in range(3):
        store = EmbeddedStore(tmp_path)
        store.start()
        taken += [store.increment("n") for _ in range(4)]
        store.stop()
    assert taken == list(range(12))


def test_only_counters_are_incremented(store: EmbeddedStore) -> None:
    """Another key is refused and keeps its value, and so does a counter at the end of its range."""
    store.put("text", b"abc", None)
    store.put("negative", b"-1", None)
    store.put("mortal", b"1", None, store.open_session(60_000))
    store.put("last", b"%d" % (2**63 - 1), None)
    for key in ("text", "negative", "mortal", "last"):
        before = store.get(key)
        with pytest.raises(IncorrectParameter, match=f"key '{key}' is not a counter"):
            store.increment(key)
        assert store.get(key) == before


def test_keys_of_the_store_itself_are_not_listed(store: EmbeddedStore) -> None:
    """Whatever a caller names as the key to begin after, even one that is longer than any key."""
    store.put("a", b"", None)
    for prefix, after in (("", "\0"), ("", ""), ("a", "\0")):
        assert store.keys(prefix, after) == ["a"]
    assert store.keys("\0") == store.keys("", "z" * 2000) == store.keys("z" * 2000) == []


def test_sessions_have_limits(tmp_path: Path) -> None:
    """Sessions are limited by owner and in total; one owner at its limit does not affect others. Ends free places."""
    clock, limits = Clock(), SessionLimits(in_all=3, of_one_owner=2)
    store = EmbeddedStore(tmp_path, clock=clock)
    store.start()  # its own session does not count for any owner
    first, _ = (store.open_session(1000, "10.0.0.1", limits) for _ in range(2))
    with pytest.raises(StoreFull, match=r"2 sessions of 10\.0\.0\.1 are open already \(metadataSessionsPerPeerMax=2\)"):
        store.open_session(1000, "10.0.0.1", limits)
    store.open_session(1000, "10.0.0.2", limits)
    with pytest.raises(StoreFull, match=r"3 sessions are open already \(metadataSessionsMax=3\)"):
        store.open_session(1000, "10.0.0.3", limits)
    store.close_session(first)
    store.open_session(1000, "10.0.0.1", limits)
    clock.now += 1.1
    store.expire_sessions()
    store.open_session(1000, "10.0.0.3", limits)
    store.stop()


def test_sessions_end_by_the_clock(tmp_path: Path) -> None:
    """A session that is kept alive stays; a moment too late, it and its keys are gone, and cannot be used again."""
    clock = Clock()
    store = EmbeddedStore(tmp_path, clock=clock)
    store.start()
    session = store.open_session(1000)
    store.put("s", b"", None, session)
    clock.now += 0.9
    store.keep_alive(session)
    clock.now += 0.9
    store.expire_sessions()
    assert store.get("s") is not None
    clock.now += 0.1
    with pytest.raises(SessionExpired):
        store.keep_alive(session)
    store.expire_sessions()
    assert store.get("s") is None
    with pytest.raises(SessionExpired):
        store.put("s", b"", None, session)
    store.put("own", b"", None, store.session())
    clock.now += 1e6
    store.expire_sessions()
    assert store.get("own") is not None
    store.stop()


def test_changes_are_told(store: EmbeddedStore) -> None:
    """Every change of every kind is reported until the watch ends."""
    reported: list[str] = []
    end = store.watch(reported.append)
    session = store.open_session(60_000)
    store.put("a", b"", None)
    store.put("s", b"", None, session)
    store.increment("n")
    store.delete("a")
    store.close_session(session)
    assert reported == ["a", "s", "n", "a", "s"]
    end()
    end()
    store.put("b", b"", None)
    assert reported[-1] == "s"


def test_concurrent_writers_lose_nothing(store: EmbeddedStore) -> None:
    """Many threads read, change and write by version: the sum is right, and each conflict was reported."""
    store.put("sum", b"0", None)

    def add() -> None:
        for _ in range(20):
            while True:
                item = store.get("sum")
                assert item is not None
                try:
                    store.put("sum", b"%d" % (int(item.value) + 1), item.version)
                    break
                except VersionConflict:
                    continue

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    item = store.get("sum")
    assert item is not None
    assert (item.value, item.version) == (b"80", 80)


def test_what_was_acknowledged_survives_kill(tmp_path: Path) -> None:
    """B1 for metadata: after kill -9 each acknowledged key exists, and no key of a session does."""
    directory = tmp_path / "metadata"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, directory], cwd=ROOT, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    while writer.stdout.readline() != b"100\n":
        continue
    writer.send_signal(signal.SIGKILL)
    acknowledged = 100 + writer.stdout.read().count(b"\n")
    writer.wait()
    writer.stdout.close()
    store = EmbeddedStore(directory)
    store.start()
    keys = store.keys("", limit=100_000)
    store.stop()
    assert keys[: acknowledged + 1] == [f"key/{number:06d}" for number in range(acknowledged + 1)]
    assert len(keys) <= acknowledged + 2
    assert "mortal" not in keys


def test_one_process_owns_a_directory(store: EmbeddedStore, tmp_path: Path) -> None:
    """A second process is refused, and told the owner and how to reach it; the first one is not disturbed."""
    second = EmbeddedStore(tmp_path / "metadata")
    with pytest.raises(StartRefused, match=f"process {os.getpid()}: reach it by grpc://"):
        second.start()
    store.put("k", b"", None)
    second.stop()
    assert store.get("k") is not None


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    """An LMDB of another program, or of a newer format, is refused and not changed."""
    with lmdb.open(str(tmp_path)) as env, env.begin(write=True) as txn:
        txn.put(b"theirs", b"1")
    store = EmbeddedStore(tmp_path)
    with pytest.raises(StartRefused, match="is not a metadata store of format 1"):
        store.start()
    with lmdb.open(str(tmp_path)) as env, env.begin() as txn:
        assert txn.stat()["entries"] == 1
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with pytest.raises(StartRefused, match="cannot be opened"):
        EmbeddedStore(blocked).start()


def test_a_full_store_says_so(tmp_path: Path) -> None:
    """If the map is full, writes are refused; reads and deletes still work."""
    store = EmbeddedStore(tmp_path, map_bytes=1 << 20)
    store.start()

    def fill() -> None:
        for number in range(1000):
            store.put(f"k{number}", b"x" * 10_000, None)

    with pytest.raises(StoreFull, match=r"has no room \(mdb_put: MDB_MAP_FULL"):
        fill()
    kept = store.keys("k")
    assert len(kept) > 10
    assert sorted(kept) == sorted(f"k{number}" for number in range(len(kept)))
    store.delete("k0")
    assert store.get("k0") is None
    store.stop()


def test_a_full_disk_is_no_failure(tmp_path: Path) -> None:
    """B15: on a real, small file system writes are refused and nothing else is; the process need not end."""
    script = 'mount -t tmpfs -o size=700k none "$1" && exec "$2" -c "$3" "$1"'
    command = [
        "unshare",
        "--mount",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
        str(tmp_path),
        sys.executable,
        FULL_DISK,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no file system of our own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    refusal, latch, version = done.stdout.splitlines()
    assert "has no room" in refusal
    assert latch == "None True"
    assert version == "0"


def test_sizes_are_bounded(store: EmbeddedStore) -> None:
    """Keys and values above the limits are refused, with the limit in the error."""
    for key in ("", "x" * 481, "a\0b"):
        with pytest.raises(IncorrectParameter, match="480"):
            store.put(key, b"", None)
    with pytest.raises(IncorrectParameter, match="at most 1048576"):
        store.put("k", bytes((1 << 20) + 1), None)


def test_a_failed_commit_is_the_last(tmp_path: Path) -> None:
    """B2: the first failed commit sets the fatal latch; no later write is acknowledged, even if the disk recovers."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_FILE, tmp_path / "metadata"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first, latch, second, kept = done.stdout.splitlines()
    assert first.startswith("MetadataStoreError: metadata store ")
    assert "mdb_txn_commit" in first
    assert "commit to metadata store" in latch
    assert second.endswith("failed before: restart the process")
    assert kept == "True"
