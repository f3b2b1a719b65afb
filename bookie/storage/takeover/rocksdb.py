"""Reading the RocksDB database `ledgers` of Java's DbLedgerStorage; it is never written (docs/formats/java-disks.md).

Main thread, at start. RocksDB itself, from the optional package `rocksdict`, runs in a separate process
(`rocksdb_pairs`), so that the bookie keeps neither its threads nor its memory, and survives a crash of it on damaged
files.
"""

import fcntl
import hashlib
import importlib.util
import logging
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from google.protobuf.message import DecodeError

from bookie._fast.index.view import Ledger
from bookie.errors import StartRefused
from bookie.pb.java_index_pb2 import LedgerData
from bookie.storage.takeover.rocksdb_pairs import unpack

__all__ = ["held", "is_rocksdb", "LEDGER_KEY", "ledgers_of", "read_pairs"]

log = logging.getLogger(__name__)

LEDGER_KEY = struct.Struct(">q")
REBUILT_KEY_BYTES = 16
"""The length of a key written by Apache BookKeeper's rebuild command: the ledger id and eight zero bytes."""
STORAGE_FLAGS_KEY = -0xEEFD
NEEDS_INTEGRITY_CHECK = 1
LAC_BYTES_MIN = 16
KEY_BYTES = 20


def is_rocksdb(path: Path) -> bool:
    """Return whether the directory `path` holds a RocksDB database."""
    return (path / "CURRENT").is_file()


@contextmanager
def held(paths: list[Path]) -> Iterator[None]:
    """Hold RocksDB's own locks on these databases, as a Java bookie would. Raises StartRefused if one is taken."""
    files = []
    try:
        for path in paths:
            lock = path / "LOCK"
            if not lock.exists():
                continue
            files.append(lock.open("r+b"))
            try:
                fcntl.lockf(files[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StartRefused(f"{lock} is held by another process, most likely a Java bookie: stop it") from None
        yield
    finally:
        for file in files:
            file.close()


def read_pairs(path: Path) -> list[tuple[bytes, bytes]]:
    """Return all keys and values in ascending order of keys, including those that are only in the write-ahead log.

    Raises ImportError without `rocksdict`, and StartRefused if RocksDB cannot read the files.
    """
    if importlib.util.find_spec("rocksdict") is None:
        raise ImportError("rocksdict")
    command = [sys.executable, "-m", "bookie.storage.takeover.rocksdb_pairs", str(path)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  (our own module)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise StartRefused(
            f"{path} cannot be read as a RocksDB database ({said}): restore it; or move it away and set "
            "takeOverFencingAll=true to start with every ledger fenced, which makes the writers of open ledgers begin "
            "new ones and loses explicit LACs"
        )
    return list(unpack(done.stdout))


def ledgers_of(pairs: list[tuple[bytes, bytes]], path: Path) -> dict[int, Ledger]:
    """Return the ledgers among `pairs`; `path` is for messages. A ledger whose record cannot be read becomes fenced."""
    found: dict[int, Ledger] = {}
    rebuilt: dict[int, Ledger] = {}
    for key, value in pairs:
        if len(key) not in {LEDGER_KEY.size, REBUILT_KEY_BYTES}:
            log.warning("a key of unknown form is skipped database=%s key=%s", path, key.hex())
            continue
        ledger = LEDGER_KEY.unpack_from(key)[0]
        if ledger < 0:
            _look_at_flags(ledger, value, path)
            continue
        # Records written after a rebuild have the short key again, so the short key is the newer of two.
        (found if len(key) == LEDGER_KEY.size else rebuilt)[ledger] = _ledger(ledger, value, path)
    return rebuilt | found


def _ledger(ledger: int, value: bytes, path: Path) -> Ledger:
    try:
        data = LedgerData.FromString(value)
    except DecodeError as error:
        log.warning("a record is damaged; its ledger is fenced database=%s ledger=%d: %s", path, ledger, error)
        return Ledger(ledger, b"", True, False, b"")
    lac = data.explicitLac
    if lac and len(lac) < LAC_BYTES_MIN:
        log.warning("an explicit LAC of %d bytes is ignored database=%s ledger=%d", len(lac), path, ledger)
        lac = b""
    return Ledger(ledger, _key(data.masterKey), data.fenced, data.limbo, lac)


def _key(stored: bytes) -> bytes:
    """Return the key that clients send. Apache BookKeeper's integrity check stores the password itself in its place."""
    if len(stored) in {0, KEY_BYTES}:
        return stored
    return hashlib.sha1(b"ledger" + stored).digest()  # noqa: S324  (the protocol's own derivation)


def _look_at_flags(key: int, value: bytes, path: Path) -> None:
    if key == STORAGE_FLAGS_KEY and len(value) == LEDGER_KEY.size:
        if LEDGER_KEY.unpack(value)[0] & NEEDS_INTEGRITY_CHECK:
            log.warning(
                "the Java bookie had not finished its integrity check; run the one of this bookie database=%s", path
            )
        return
    log.info("a special key is skipped database=%s key=%d", path, key)
