"""The world as Python sees it: builds and loads `native/`, and gives its functions and shared memory types.

One Runtime per process. The process that creates it maps the shared memory; the bookies that it forks run in it.
"""

import ctypes
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from enum import IntEnum
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

NATIVE = Path(__file__).with_name("native")
NEVER = (1 << 63) - 1
EVENTS_MAX = 1 << 16
HISTORY_BYTES = 32 << 20
OUTPUT_BYTES = 60_000
BEGIN_NS = 1_000_000_000_000
"""The monotonic clock at the beginning of a world."""


class Exit(IntEnum):
    """How a run of the bookie ended."""

    ENDED = 0
    RAISED = 1
    KILLED = 40
    STUCK = 41
    OVERFLOWN = 42


class Op(IntEnum):
    """The calls that the world knows; the order is that of `enum op` in world.h."""

    LOCK = 0
    UNLOCK = 1
    WAIT = 2
    SIGNAL = 3
    ACQUIRE = 4
    RELEASE = 5
    START = 6
    EXIT = 7
    SLEEP = 8
    YIELD = 9
    OPEN = 10
    CLOSE = 11
    READ = 12
    WRITE = 13
    SYNC = 14
    ALLOCATE = 15
    TRUNCATE = 16
    RENAME = 17
    UNLINK = 18
    MKDIR = 19
    STATVFS = 20
    EPOLL = 21
    RECV = 22
    SEND = 23
    ACCEPT = 24
    WAKE = 25
    PEER = 26


class Action(IntEnum):
    """What a rule does to a call; the order is that of `enum action` in world.h."""

    NONE = 0
    EIO = 1
    ENOSPC = 2
    SHORT = 3
    STALL = 4
    ROT = 5
    LOST = 6
    ASTRAY = 8


class Lie(IntEnum):
    """What the disk lied about; the order is that of `enum lie` in world.h."""

    JOURNAL = 0
    FILE = 1
    SYNC = 2
    READ = 3


class Settings(ctypes.Structure):
    """`struct settings` of world.h, which describes the fields."""

    _fields_ = [("seed", ctypes.c_uint64)] + [
        (name, ctypes.c_int64)
        for name in (
            "kill_at",
            "steps_max",
            "preempt",
            "priorities",
            "spurious",
            "disk_ns",
            "sync_ns",
            "short_io",
            "socket_bytes",
            "pause_at",
            "pause_ns",
            "pause_all",
            "full_from",
            "full_to",
            "jump_at",
            "jump_ns",
            "traced",
            "absent_ns",
        )
    ]


class TraceEvent(ctypes.Structure):
    """`struct event` of world.h."""

    _fields_ = [
        ("step", ctypes.c_uint32),
        ("thread", ctypes.c_uint16),
        ("op", ctypes.c_uint16),
        ("now", ctypes.c_int64),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
        ("text", ctypes.c_char * 40),
    ]


class Shared(ctypes.Structure):
    """The beginning of `struct shared` of world.h. Threads, connections and notes of changes follow."""

    _fields_ = [
        ("settings", Settings),
        ("steps", ctypes.c_int64),
        ("now", ctypes.c_int64),
        ("wall_jump", ctypes.c_int64),
        ("hash", ctypes.c_uint64),
        ("event_count", ctypes.c_int64),
        ("history_bytes", ctypes.c_int64),
        ("status", ctypes.c_int64),
        ("output_bytes", ctypes.c_int64),
        ("output", ctypes.c_char * OUTPUT_BYTES),
        ("finding", ctypes.c_char * 1024),
        ("events", TraceEvent * EVENTS_MAX),
        ("history", ctypes.c_char * HISTORY_BYTES),
    ]


def build() -> Path:
    """Compile `native/` unless that was done before, and return the library."""
    sources = sorted(NATIVE.glob("*.c"))
    parts = [path.read_bytes() for path in (*sources, NATIVE / "world.h")]
    digest = hashlib.sha1(b"".join(parts) + sys.version.encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"bookie-world-{os.getuid()}-{digest}.so"
    if not library.exists():
        made = library.with_suffix(f".{Path('/proc/self').readlink()}")
        flags = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,-Bsymbolic"]
        flags.append("-I" + sysconfig.get_path("include"))
        subprocess.run(["gcc", *flags, "-o", made, *sources, "-ldl", "-lpthread"], check=True)
        made.rename(library)
    return library


def calls() -> ModuleType:
    """Return the functions that peers call most often, which native/calls.c describes."""
    library = str(build())
    loader = ExtensionFileLoader("world_calls", library)
    spec = spec_from_file_location("world_calls", library, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


class Runtime:
    """The loaded library. `shared` is the memory that all processes of a world see."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(build()))
        quick = ctypes.PyDLL(str(build()))  # calls that never wait keep the interpreter's lock
        integer, number, text = ctypes.c_int64, ctypes.c_int, ctypes.c_char_p
        self._library.world_share.restype = ctypes.POINTER(Shared)
        self._declare(self._library, "world_wait", number, integer)
        self._declare(quick, "disk_rule", None, integer, text, integer, integer, integer, integer)
        self._declare(quick, "disk_cut", integer, number, ctypes.c_uint64, integer)
        self._declare(quick, "disk_place", None, number, text, text)
        self._declare(quick, "disk_settle", None, number)
        self._declare(quick, "world_faults", integer)
        self._declare(quick, "world_lies", integer, number, number)
        self._declare(quick, "world_faults_of", integer, number)
        self._declare(quick, "world_alive", number, number)
        self._declare(quick, "world_prepare", number, number)
        self._declare(self._library, "world_enter", None, number, ctypes.c_void_p)
        self._declare(self._library, "world_exit", None, number)
        self._declare(quick, "world_return", None)
        self._declare(quick, "world_kill", None, number, integer)
        self._declare(quick, "world_pause", None, number, integer)
        self._declare(quick, "world_fill", None, number, integer)
        self._declare(quick, "network_cut", None, number, number, number)
        self._declare(quick, "network_listens", number, number)
        self._quick = quick
        self._declare_memory(quick)
        self._declare_peers(quick)
        self.shared: Any = self._library.world_share().contents
        self.damaged = False
        """Whether the disk of this process lied or decayed before this run."""
        self.wait = self._library.world_wait
        self.connect = quick.peer_connect
        self.end = quick.peer_end
        self._add_calls()
        self.disk_cut = quick.disk_cut
        self.settle = quick.disk_settle
        self.faults = quick.world_faults
        self.lies = quick.world_lies
        self.faults_of = quick.world_faults_of
        self.alive = quick.world_alive
        self.kill = quick.world_kill
        self.pause = quick.world_pause
        self.fill = quick.world_fill
        self.cut_off = quick.network_cut
        self.listens = quick.network_listens

    def _add_calls(self) -> None:
        """Add what peers call most often."""
        called = calls()
        self.now: Callable[[], int] = called.now
        self.news: Callable[[], int] = called.news
        """Return which of the first 64 connections have bytes for their peers, or have ended, as bits."""
        self.record: Callable[[bytes], None] = called.record
        """Append to the history, which outlives this process."""
        self.send: Callable[[int, bytes], int] = called.send
        """Send on a connection, and return how many bytes the bookie's socket took; -1 if the bookie has closed."""
        self.receive: Callable[[int, int], bytes | None] = called.receive
        """Return what has arrived on a connection, at most so many bytes (0: any number), or None if the bookie has
        closed it."""

    def _declare_peers(self, quick: Any) -> None:
        """Declare the functions of the peers, which never wait."""
        number = ctypes.c_int
        self._declare(quick, "peer_connect", number, ctypes.c_uint32)
        self._declare(quick, "peer_end", None, number, number)

    def _declare_memory(self, quick: Any) -> None:
        """Declare the functions for processes and their memory."""
        self._declare(quick, "world_end_with", None, ctypes.c_int)
        self._declare(quick, "world_parent", ctypes.c_int)
        self._declare(quick, "reset_begin", ctypes.c_int)
        self._declare(quick, "reset_end", None, ctypes.c_int)
        self._declare(quick, "reset_differs", ctypes.c_int64)
        self.differs = quick.reset_differs

    @staticmethod
    def _declare(library: Any, name: str, result: Any, *arguments: Any) -> None:
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(arguments)

    # --- in the parent process ----------------------------------------------------------------------------------------

    def redirect(self) -> int:
        """Let the libraries that are loaded now call the world. Return how many of their references changed."""
        return int(self._library.world_redirect())

    def new_world(self, root: Path, processes: int = 1) -> None:
        """Begin with an empty history, and an empty disk for each process: `disk-0` below `root`, and so on."""
        shutil.rmtree(root, ignore_errors=True)
        for process in range(processes):
            disk, graves = root / f"disk-{process}", root / f"graves-{process}"
            disk.mkdir(parents=True)
            graves.mkdir()
            self._quick.disk_place(process, os.fsencode(disk), os.fsencode(graves))
        self.shared.now = BEGIN_NS
        self.shared.wall_jump = 0
        self.shared.history_bytes = 0

    def finding(self) -> str:
        """Return why the last run ended, if the world ended it."""
        return str(self.shared.finding.decode(errors="replace"))

    def history(self) -> bytes:
        """Return the records of `record`."""
        return ctypes.string_at(ctypes.addressof(self.shared) + Shared.history.offset, self.shared.history_bytes)

    def output(self) -> str:
        """Return what the last run logged."""
        return ctypes.string_at(ctypes.addressof(self.shared) + Shared.output.offset, self.shared.output_bytes).decode(
            errors="replace"
        )

    def trace(self) -> list[str]:
        """Return the last calls of the last run, one line each."""
        count = self.shared.event_count
        lines = []
        for number in range(max(0, count - EVENTS_MAX), count):
            event = self.shared.events[number % EVENTS_MAX]
            at = (event.now - BEGIN_NS) / 1e9
            name = Op(event.op).name.lower()
            text = event.text.decode(errors="replace")
            lines.append(f"{event.step:7} {at:14.9f} thread {event.thread:<3} {name:9} {event.a} {event.b} {text}")
        return lines

    # --- in the process of a bookie -----------------------------------------------------------------------------------

    def begin(self, settings: Settings) -> None:
        """Make this thread the driver of a world: the first thread, which starts the others."""
        self._quick.disk_no_rules()
        self._library.world_begin(ctypes.byref(settings))

    def keep_memory(self) -> int:
        """Remember the memory of this process. Return how often it was put back to this moment, or -1 if it cannot be.

        It returns again after each `end_run`, with nothing remembered of what happened since.
        """
        return int(self._quick.reset_begin())

    def end_run(self, status: int, output: str) -> None:
        """End a run of the bookie, and tell the parent process how. This process ends, or begins anew."""
        data = output[-OUTPUT_BYTES:].encode()[-OUTPUT_BYTES:]
        ctypes.memmove(ctypes.addressof(self.shared) + Shared.output.offset, data, len(data))
        self.shared.output_bytes = len(data)
        self._quick.reset_end(status)

    def leave(self) -> None:
        """Give this thread the real clock and the real files again."""
        self._library.world_leave()

    def child(self) -> int:
        """Fork a process that ends when this one does, even if this one is killed. Return as `os.fork`."""
        parent = self._quick.world_parent()
        pid = os.fork()
        if pid == 0:
            self._quick.world_end_with(parent)
        return pid

    def fork(self, process: int) -> tuple[int, int]:
        """Fork another process of the world. Return (its pid, 0) here, and (0, its first thread) there."""
        thread = int(self._quick.world_prepare(process))
        self._library.world_leave()  # the child must not act as this thread
        pid = self.child()
        if pid == 0:
            return 0, thread
        self._quick.world_return()
        return pid, 0

    def enter(self, thread: int, settings: Settings) -> None:
        """Be the first thread of a forked process. Returns when it is this thread's turn."""
        self._quick.disk_no_rules()
        self._library.world_enter(thread, ctypes.byref(settings))

    def exit(self, status: int) -> None:
        """End this process, while the others go on."""
        self._library.world_exit(status)

    def rule(self, ops: int, part: str, action: Action, nth: int, times: int, argument: int) -> None:
        """Let `times` calls of `ops` (a bit mask of `Op`) on paths with `part` meet an action, from the `nth` on.

        A `part` that ends with "$" is the end of the path.
        """
        self._quick.disk_rule(ops, part.encode(), int(action), nth, times, argument)

    def distrusted(self) -> bool:
        """Return whether the disk of process 0 may hold something else than what was written to it."""
        return self.damaged or any(self.lies(0, kind) for kind in Lie)


RECORD = struct.Struct("<BBhiIqqqqH")
"""kind, op, client, code, id, ledger, entry, lac, at, number of bodies; 8 bytes follow for each body."""
