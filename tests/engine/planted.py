"""Planted bugs of the engine. The worlds must find each of them: `python -m tests.engine 0:1000 --plant NAME --first`.

A bug is compiled into the modules (`number`, see bookie/_fast/csrc/planted.h), or it is in the calls of the C library
(`rules` for every run), or in the Python code around the modules (`patch`).
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bookie._fast.index.view import Index
from bookie.server.data_port import DataPort
from tests.engine import directed
from tests.engine.hung import hung
from tests.engine.plan import Plan, Rule, draw_plan
from tests.engine.runtime import Action, Op
from tests.engine.sliced import sliced
from tests.fixtures.planted import SENTENCES, number_of

__all__ = ["ELSEWHERE", "NOTHING", "Planted", "PLANTED", "WORLDS"]


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted bug: how to switch it on, and in which worlds it shows."""

    sentence: str
    number: int = 0
    rules: tuple[Rule, ...] = ()
    patch: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    draw: Callable[[Plan], Plan] | None = None
    """Draws the worlds in which it shows, if it hardly ever does in ordinary ones."""

    def begin(self) -> None:
        """Patch what the bug patches, until this process ends."""
        self.patch().__enter__()

    def plan(self, plan: Plan) -> Plan:
        """Return a world with the bug, drawn for it if that is said."""
        drawn = self.draw(draw_plan(plan.seed)) if self.draw else plan
        return replace(drawn, planted=self.rules)


def unsynced(part: str) -> tuple[Rule, ...]:
    """Return the rule that syncs of these files, or directories, do nothing."""
    return (Rule((Op.SYNC,), part, Action.LOST, 1, -1, argument=1),)


def parents_unsynced() -> AbstractContextManager[Any]:
    return patch("bookie.durable.sync_directory", lambda _: None)


@contextmanager
def _no_swap(index: Path, **_: object) -> Iterator[None]:
    index.mkdir(exist_ok=True)
    yield


def index_in_place() -> AbstractContextManager[Any]:
    return patch("bookie.storage.ledger_storage.new_index", _no_swap)


def largest_mark() -> AbstractContextManager[Any]:
    from bookie.storage import recovery

    real = recovery.replay_journal

    def replay(stores: Any, opener: Any, directory: Path, marks: Any, **more: Any) -> Any:
        return real(stores, opener, directory, [max(marks)] * len(marks), **more)

    return patch("bookie.storage.replays.replay_journal", replay)


def newest_file_only() -> AbstractContextManager[Any]:
    from bookie.storage import recovery

    real = recovery.files_to_replay
    return patch.object(recovery, "files_to_replay", lambda *asked: real(*asked)[-1:])


@contextmanager
def _index_at_once(index: Path, *, map_bytes: int, step: Any) -> Iterator[Index]:
    index.mkdir(exist_ok=True)
    opened = Index.open(index, map_bytes)
    yield opened
    opened.close()


def takeover_in_place() -> AbstractContextManager[Any]:
    return patch("bookie.storage.takeover.build.new_index", _index_at_once)


def java_fences_lost() -> AbstractContextManager[Any]:
    return patch("bookie.storage.takeover.build.with_journals", lambda known, _: known)


class _Idle:
    """A loop of the data port that does not run."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop

    def run(self) -> None:
        return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


def sealed_loop_idle() -> AbstractContextManager[Any]:
    real = DataPort._sealed_loops
    return patch.object(DataPort, "_sealed_loops", lambda *given: list(map(_Idle, real(*given))))


NOTHING = Planted("nothing is wrong")

OUTSIDE = {
    "INDEX_IN_PLACE": Planted("a new index is created under its final name", patch=index_in_place),
    "INDEX_UNSYNCED": Planted("syncs of the location index do nothing", rules=unsynced("data.mdb$")),
    "JAVA_FENCES_LOST": Planted("a take-over ignores fences in journals before the mark", patch=java_fences_lost),
    "JOURNAL_NAMES_UNSYNCED": Planted("the journal's directory is not synced", rules=unsynced("/journal-0/current$")),
    "JOURNAL_UNSYNCED": Planted("syncs of journal files do nothing", rules=unsynced(".txn$")),
    "LARGEST_MARK": Planted("replay begins for all directories at the largest of their marks", patch=largest_mark),
    "LOG_NAMES_UNSYNCED": Planted("the directory of entry logs is not synced", rules=unsynced("/ledgers-0/current$")),
    "LOGS_UNSYNCED": Planted("syncs of entry logs do nothing", rules=unsynced(".log$")),
    "MARK_UNSYNCED": Planted("a mark gets its name before its bytes are on disk", rules=unsynced(".tmp$")),
    "NEWEST_FILE_ONLY": Planted("only the newest journal file is replayed", patch=newest_file_only),
    "PARENTS_UNSYNCED": Planted("new directories are not synced in their parents", patch=parents_unsynced),
    "SEALED_LOOP_IDLE": Planted("the loop for encrypted connections does not run", patch=sealed_loop_idle),
    "TAKEOVER_IN_PLACE": Planted("a take-over builds the index under its final name", patch=takeover_in_place),
}

WORLDS: dict[Callable[[Plan], Plan], tuple[str, ...]] = {
    directed.collected: (
        *("COPY_UNSYNCED", "DELETED_STAYS_NEXT", "GONE_IS_NO_ENTRY", "MOVED_ANYWAY", "OPEN_COLLECTED"),
        *("RELEASED_EARLY", "UNLINK_EARLY"),
    ),
    directed.fenced: (
        *("FENCE_ANSWERED_EARLY", "FENCE_IGNORED", "FENCE_IN_MEMORY", "FENCE_NOT_REPLAYED", "FENCE_RACE"),
        "V3_FENCE_LOST",
    ),
    directed.fenced_twice: ("SECOND_FENCE_EARLY",),
    directed.flushed: (
        *("CHANGE_LOST", "FENCE_NOT_INDEXED", "FLUSH_UNREAD", "INDEX_UNSYNCED", "JOURNAL_NAMES_UNSYNCED"),
        *("LAST_NOT_RAISED", "LOGS_UNSYNCED", "LOG_NAMES_UNSYNCED", "MARK_EARLY", "MARK_LATE", "MARK_UNSYNCED"),
        *("REPLAY_AFTER_MARK", "TRIM_MARKED"),
    ),
    directed.full: (
        *("BORN_COMMITTED", "FAILED_COMMIT_SETTLED", "FAILED_HALF_LOST"),
        "MARK_WHEN_FULL",
    ),
    directed.full_journal: ("FULL_IS_WRITTEN",),
    directed.full_log: ("GIVE_UP_ALL",),
    directed.full_replay: ("LAG_FORGOTTEN",),
    directed.gaps: ("BATCH_OVER_GAPS", "GAPS_TAKE_SPACE"),
    directed.killed: (
        *("ACK_AFTER_FAILURE", "ACK_EARLY", "ACK_NEXT_GROUP", "JOURNAL_UNSYNCED", "SKIP_SYNC"),
        *("UNFINISHED_RECORDS",),
    ),
    directed.late_directory: ("LARGEST_MARK", "TRIM_BY_NEWEST"),
    directed.logs_by_ledger: ("TAIL_DROPPED",),
    directed.long_ids: ("SHORT_LEDGER_IDS",),
    directed.many_files: ("NEWEST_FILE_ONLY",),
    directed.prompt: ("WAKE_LOST",),
    directed.sealed: ("SEALED_LOOP_IDLE",),
    directed.sipping: ("HALF_REUSED",),
    directed.stalled: ("PATIENCE_ENDLESS",),
    directed.slow_readers: (*("DEAD_PAGE_SHOWN", "INPUT_DROPPED", "SEGMENT_REUSED", "SLICE_RESENT", "STALE_PAGES"),),
    directed.taken_over: ("JAVA_FENCES_LOST", "TAKEOVER_IN_PLACE"),
    directed.unreadable: ("NO_ENTRY_ON_EIO",),
    directed.unreadable_index: ("LAST_AFTER_ERROR",),
    directed.young: ("INDEX_IN_PLACE", "OLD_META_JUDGED", "PARENTS_UNSYNCED"),
    directed.zeroed: ("ZEROS_OVER_GROUPS",),
    hung: ("ROOM_WAITS", "TRIM_WAITS"),
    sliced: ("LOG_SETTLED_EARLY", "PENDING_LOST", "PENDING_MARKED", "PENDING_UNREAD"),
}
"""The worlds in which a bug shows soon. In ordinary ones it shows later, or hardly ever."""

_DRAWS = {bug: world for world, bugs in WORLDS.items() for bug in bugs}
_ALL = {**{name: Planted(sentence, number_of(name)) for name, sentence in SENTENCES.items()}, **OUTSIDE}
PLANTED = {name: replace(bug, draw=_DRAWS.get(name)) for name, bug in _ALL.items()}

ELSEWHERE: dict[str, str] = {
    "ANY_KEY": "tests/crash/test_planted.py",
    "DELETED_STAYS_NEXT": "tests/fast/test_index_table.py",
    "DELETE_INDEX_ONLY": "tests/crash/test_collection_steps.py",
    "DOUBT_ENDED": "tests/storage/test_index_repair.py",
    "FAILED_COMMIT_SETTLED": "tests/fast/test_changed_ledgers.py",
    "FORCE_EARLY": "tests/hostile/test_v3.py",
    "GONE_IS_NO_ENTRY": "tests/fast/test_failed_reads.py",
    "GROUP_UNCHECKED": "tests/fast/test_journal_reader.py",
    "KEY_NOT_JOURNALED": "tests/storage/test_master_keys.py",
    "LAC_NOT_REPLAYED": "tests/storage/test_recovery.py",
    "LIMBO_DENIES": "tests/hostile/test_statuses.py",
    "LIMBO_WRITES": "tests/hostile/test_statuses.py",
    "OPEN_COLLECTED": "tests/fast/test_collector.py",
    "PENDING_STAYS": "tests/storage/test_index_slices.py",
    "RELEASED_EARLY": "tests/fast/test_entrylog_ids.py",
    "RISE_UNANNOUNCED": "tests/fast/test_long_polls.py",
    "STALE_LEAF": "tests/fast/test_index_view.py",
    "UNPIN_ONCE": "tests/hostile/test_slow_readers.py",
}
"""The tests that fail with bugs which the worlds cannot find: peers there have one master key, do not defer syncs, do
not wait for LACs, nobody judges ledgers that are deleted or in limbo, and the index hardly ever fails to commit while
ledgers have changed. Or the state that shows the bug is rare in worlds, and one of the tests creates it.
"""
