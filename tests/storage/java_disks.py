"""Disks as a Java bookie leaves them, made by hand: entry logs, a RocksDB database or index files, and marks."""

import json
import struct
import subprocess
import sys
from pathlib import Path

from bookie.pb.java_index_pb2 import LedgerData
from tests.reference import entry_log as log_model

KEY = b"k" * 20


def entry(ledger: int, entry_id: int) -> bytes:
    """Return an entry whose payload names its ledger and id."""
    return log_model.entry(ledger, entry_id, struct.pack(">qq", entry_id - 1, 30 * (entry_id + 1)) + b"payload")


def index_file(*, key: bytes = KEY, fenced: bool = False, lac: bytes = b"", version: int = 1) -> bytes:
    """Return the header of an .idx file, followed by some locations."""
    head = b"BKLE" + struct.pack(">ii", version, len(key)) + key + struct.pack(">i", fenced)
    if version:
        head += struct.pack(">i", len(lac)) + lac
    return head.ljust(1024, b"\0") + struct.pack(">qq", 1 << 32 | 1028, 0)


def index_path(current: Path, ledger: int) -> Path:
    """Return the path of a ledger's index file."""
    return current / f"{ledger >> 8 & 0xFF:x}" / f"{ledger & 0xFF:x}" / f"{ledger:x}.idx"


def put_index_file(current: Path, ledger: int, data: bytes) -> Path:
    """Write an index file."""
    path = index_path(current, ledger)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def ledger_data(*, key: bytes = KEY, fenced: bool = False, lac: bytes | None = None, limbo: bool = False) -> bytes:
    """Return a value of the RocksDB database `ledgers`."""
    data = LedgerData(exists=True, fenced=fenced, masterKey=key)
    if lac is not None:
        data.explicitLac = lac
    if limbo:
        data.limbo = True
    return data.SerializeToString()


def put_rocksdb(path: Path, pairs: dict[bytes, bytes]) -> None:
    """Create a database with these pairs in another process, because RocksDB's threads stay in theirs."""
    path.mkdir(parents=True, exist_ok=True)
    program = (
        "import json, sys; from rocksdict import Options, Rdict\n"
        "database = Rdict(sys.argv[1], options=Options(raw_mode=True))\n"
        "for key, value in json.load(sys.stdin): database[bytes.fromhex(key)] = bytes.fromhex(value)\n"
        "database.close()"
    )
    given = json.dumps([(key.hex(), value.hex()) for key, value in pairs.items()])
    subprocess.run([sys.executable, "-c", program, str(path)], input=given, text=True, check=True)
    (path / "rocksdict-config.json").unlink()


def put_logs(current: Path, logs: dict[int, list[bytes]], *, closed: bool = True) -> None:
    """Write entry logs by id."""
    current.mkdir(parents=True, exist_ok=True)
    for log_id, entries in logs.items():
        (current / f"{log_id:x}.log").write_bytes(log_model.build(entries, closed=closed))
