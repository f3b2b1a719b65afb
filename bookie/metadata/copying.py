"""Copy the metadata of a cluster from one store to another one, and compare two stores.

    begin(source, target)
    for done in copy(source, target): ...

Ledgers, logs, marks and settings come first, and cookies last: a bookie only starts with its cookie, so that none can
start on half a copy, where it would take ledgers that are not there yet for deleted ones. A copy that was interrupted
is continued by another one. The drivers are started; each call takes one thread of the caller, and a pool for requests.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from bookie.errors import IllegalOperation, NoSuchLedgerMetadata, NoSuchLog
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metadata.records.replication import Check

__all__ = ["begin", "check_source", "compare", "copy", "Done", "finish"]

WORKERS = 16
BATCH = 1024
PASSES_MAX = 5
"""How often everything is compared before the copy gives up because the source is being changed."""
WORDS = {"deleted": "only in the target", "created": "missing in the target", "changed": "different", "equal": "equal"}


@dataclass(frozen=True, slots=True)
class Done:
    """What was compared by now: `outcome` is `equal`, `created`, `changed` or `deleted` in the target."""

    kind: str
    name: str
    outcome: str

    @property
    def in_words(self) -> str:
        """What was different."""
        return WORDS[self.outcome]


def check_source(source: MetadataDriver) -> str:
    """Return the instance id of a cluster that can be copied now. Raises as `begin` does for the source."""
    instance_id = source.cluster.instance_id()
    if instance_id is None:
        raise IllegalOperation("this cluster is older than instance ids, so a copy of it cannot be recognised")
    if writable := source.bookies.present(read_only=False):
        raise IllegalOperation(
            f"{_few(writable)} of the source can be written to: stop the bookies or make them read-only "
            "(bkadmin readonly on)"
        )
    return instance_id


def begin(source: MetadataDriver, target: MetadataDriver) -> None:
    """Check that a copy may begin, and create the cluster in the target if it is not there.

    Raises:
        IllegalOperation: A bookie is registered as writable in the source or at all in the target; the target holds
            another cluster; or the cluster has no instance id.
        ClusterNotInitialized: The source holds no cluster.
    """
    instance_id = check_source(source)
    if not target.cluster.is_initialized():
        target.cluster.initialize(instance_id)
    found = target.cluster.instance_id()
    if found != instance_id:
        raise IllegalOperation(f"the target holds another cluster, {found}: name an empty root, scope or directory")
    _require_unused(target)


def copy(source: MetadataDriver, target: MetadataDriver) -> Iterator[Done]:
    """Make ledgers, logs, marks and settings of the target those of the source, and yield what was compared.

    Everything is compared until nothing was different, so that what changed meanwhile is copied, too.

    Raises:
        IllegalOperation: The target has cookies already, and differs; or the source is being changed all the time.
    """
    in_use = bool(target.bookies.known())
    for _ in range(PASSES_MAX):
        changes = 0
        for done in _all(source, target, write=not in_use):
            if done.outcome != "equal":
                if in_use:
                    raise IllegalOperation(
                        f"the target has cookies, so bookies may have used it, and {done.kind} {done.name} is "
                        f"{done.in_words}: delete the target (bkadmin nukeexistingcluster) to begin anew"
                    )
                changes += 1
            yield done
        if not changes:
            return
        target.ledgers.leave_ids(source.ledgers.last_id())
    raise IllegalOperation(
        f"the source was changed during each of {PASSES_MAX} passes: stop clients and auto-recovery, and copy again"
    )


def finish(source: MetadataDriver, target: MetadataDriver) -> int:
    """Copy the cookies, after which bookies can start on the target, and return how many there are.

    Raises IllegalOperation as `begin` does, and if a cookie in the target is another one.
    """
    target.ledgers.leave_ids(source.ledgers.last_id())
    begin(source, target)
    known = sorted(source.bookies.known())
    for bookie_id in known:
        cookie, there = source.cookies.read(bookie_id), target.cookies.read(bookie_id)
        if cookie is None or (there is not None and there[0] == cookie[0]):
            continue
        if there is not None:
            raise IllegalOperation(f"the cookie of {bookie_id} in the target is another one: bookies have used it")
        target.cookies.write(bookie_id, cookie[0], None)
    return len(known)


def compare(source: MetadataDriver, target: MetadataDriver) -> Iterator[Done]:
    """Compare everything and change nothing; a `created` is what the target lacks, a `deleted` what only it has."""
    yield from _all(source, target, write=False)
    cookies = _both([sorted(source.bookies.known())], [sorted(target.bookies.known())])
    for bookie_id, here, there in cookies:
        texts = [driver.cookies.read(bookie_id) for driver in (source, target)]
        same = [text and text[0] for text in texts]
        yield Done("cookie", bookie_id, _outcome(here, there, equal=same[0] == same[1]))
    ids = target.ledgers.last_id() >= source.ledgers.last_id()
    yield Done("the counter of", "ledger ids", "equal" if ids else "changed")


def _all(source: MetadataDriver, target: MetadataDriver, *, write: bool) -> Iterator[Done]:
    source.cluster.seen()  # reads of this session see all that happened before
    ledgers, logs = _Ledgers(source, target, write=write), _Logs(source, target, write=write)
    with ThreadPoolExecutor(WORKERS, "metadata-copy") as pool:
        yield from _compared(pool, source.ledgers.ranges(), target.ledgers.ranges(), ledgers.settle)
        yield from _compared(pool, source.logs.names(), target.logs.names(), logs.settle)
    yield from _marks(source, target, write=write)
    yield from _settings(source, target, write=write)


def _compared(
    pool: ThreadPoolExecutor,
    here: Iterator[list[Any]],
    there: Iterator[list[Any]],
    settle: Callable[[tuple[Any, bool, bool]], Done],
) -> Iterator[Done]:
    pairs = _both(here, there)
    while batch := list(islice(pairs, BATCH)):
        yield from pool.map(settle, batch)


def _both(here: Iterable[list[Any]], there: Iterable[list[Any]]) -> Iterator[tuple[Any, bool, bool]]:
    """Merge two ascending series: each name once, with whether it is in the first and in the second one."""
    first = ((name, 0) for page in here for name in page)
    second = ((name, 1) for page in there for name in page)
    for name, found in groupby(heapq.merge(first, second), key=lambda one: one[0]):
        sides = {side for _, side in found}
        yield name, 0 in sides, 1 in sides


class _Ledgers:
    """How one ledger is compared, and made equal if `write` is set."""

    def __init__(self, source: MetadataDriver, target: MetadataDriver, *, write: bool) -> None:
        self._source, self._target, self._write = source.ledgers, target.ledgers, write

    def settle(self, pair: tuple[int, bool, bool]) -> Done:
        ledger, here, there = pair
        wanted = self._wanted(ledger) if here else None
        found = self._target.read(ledger) if there else None
        equal = wanted is None or found is None or replace(found.value, token=0) == wanted
        outcome = _outcome(wanted is not None, found is not None, equal=equal)
        if self._write:
            if outcome == "created" and wanted is not None:
                self._target.create(ledger, wanted)
            elif outcome == "changed" and wanted is not None and found is not None:
                self._target.write(ledger, wanted, found.version)
            elif outcome == "deleted" and found is not None:
                self._target.delete(ledger, found.version)
        return Done("ledger", str(ledger), outcome)

    def _wanted(self, ledger: int) -> LedgerMetadata | None:
        """Return the metadata with what only the store knows, the time of creation; None if it was deleted."""
        try:
            found = self._source.read(ledger)
        except NoSuchLedgerMetadata:
            return None
        metadata = replace(found.value, token=0)
        if metadata.ctime_ms is None and found.created_ms > 0 and metadata.format_version > 1:
            return replace(metadata, ctime_ms=found.created_ms)
        return metadata


class _Logs:
    """How one log is compared, and made equal if `write` is set."""

    def __init__(self, source: MetadataDriver, target: MetadataDriver, *, write: bool) -> None:
        self._source, self._target, self._write = source.logs, target.logs, write

    def settle(self, pair: tuple[str, bool, bool]) -> Done:
        name, here, there = pair
        wanted = None
        with suppress(NoSuchLog):
            wanted = self._source.read(name) if here else None
        found = self._target.read(name) if there else None
        equal = wanted is None or found is None or found.value == wanted.value
        outcome = _outcome(wanted is not None, found is not None, equal=equal)
        if self._write:
            if outcome == "created" and wanted is not None:
                self._target.create(name, wanted.value)
            elif outcome == "changed" and wanted is not None and found is not None:
                self._target.write(name, wanted.value, found.version)
            elif outcome == "deleted" and found is not None:
                self._target.delete(name, found.version)
        return Done("log", name, outcome)


def _marks(source: MetadataDriver, target: MetadataDriver, *, write: bool) -> Iterator[Done]:
    """A mark that only the target has stays, since a worker that finds nothing to copy removes it."""
    there = {mark.ledger: mark for page in target.replication.marks() for mark in page}
    for page in source.replication.marks():
        for mark in page:
            found = there.get(mark.ledger)
            lacking = set(mark.missing) - set(found.missing if found else ())
            if lacking and write:
                target.replication.mark(mark.ledger, mark.missing, mark.marked_ms)
            outcome = _outcome(here=True, there=found is not None, equal=not lacking)
            yield Done("the mark of ledger", str(mark.ledger), outcome)


def _settings(source: MetadataDriver, target: MetadataDriver, *, write: bool) -> Iterator[Done]:
    """A setting that only the target has stays, since no store can take one back."""
    ours, theirs = source.replication, target.replication

    def settle(name: str, wanted: Any, found: Any, change: Callable[[Any], object]) -> Done:
        if write and wanted != found and wanted is not None:
            change(wanted)
        return Done("setting", name, "equal" if wanted in {found, None} else "changed")

    yield settle(
        "health checks", source.cluster.health_checks(), target.cluster.health_checks(),
        lambda wanted: target.cluster.enable_health_checks(enabled=wanted),
    )  # fmt: skip
    yield settle("replication", ours.enabled(), theirs.enabled(), lambda wanted: theirs.enable(enabled=wanted))
    yield settle(
        "lostBookieRecoveryDelay", ours.lost_bookie_delay_s(), theirs.lost_bookie_delay_s(),
        theirs.set_lost_bookie_delay_s,
    )  # fmt: skip
    for check in Check:

        def note(at_ms: int, check: Check = check) -> None:
            theirs.set_last_check_ms(check, at_ms)

        yield settle(check.value, ours.last_check_ms(check), theirs.last_check_ms(check), note)


def _outcome(here: bool, there: bool, *, equal: bool) -> str:  # noqa: FBT001 - two sides of one thing
    if here and there:
        return "equal" if equal else "changed"
    return "created" if here else "deleted" if there else "equal"


def _require_unused(target: MetadataDriver) -> None:
    if registered := target.bookies.present(read_only=False) | target.bookies.present(read_only=True):
        raise IllegalOperation(f"{_few(registered)} of the target is running: it is in use, and is not overwritten")


def _few(bookies: Iterable[str]) -> str:
    names = sorted(bookies)
    return f"bookie {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
