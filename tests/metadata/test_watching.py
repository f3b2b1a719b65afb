"""The watch thread merges changes, retries failed reads, and calls no listener after the end."""

import logging
import threading
from collections.abc import Iterator

import pytest

from bookie.errors import MetadataSerializationError, MetadataStoreError
from bookie.metadata.watching import Watcher
from tests.metadata.seen import Seen


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    """A running watch thread."""
    made = Watcher("test-watch")
    made.start()
    yield made
    made.stop()
    made.stop()


class Source:
    """A value that tests set; reads can be made to fail."""

    def __init__(self) -> None:
        self.value = 0
        self.failures: list[Exception] = []
        self.reads = Seen()

    def read(self, _watch: object) -> int:
        """Return the present value, or raise a planned failure."""
        value = self.value
        self.reads(value)
        if self.failures:
            raise self.failures.pop(0)
        return value


def test_only_changes_are_told(watcher: Watcher) -> None:
    """A listener gets the first value and each different one; a touch without a change is not reported."""
    source, seen = Source(), Seen()
    watch = watcher.add(source.read, seen)
    seen.wait_equal(0)
    watch.touch()
    source.value = 1
    watch.touch()
    seen.wait_equal(1)
    assert seen.values == [0, 1]


def test_an_outage_is_waited_for(watcher: Watcher) -> None:
    """Reads that fail with a retriable error are repeated until one succeeds, without another touch."""
    source, seen = Source(), Seen()
    source.failures = [MetadataStoreError("away"), MetadataStoreError("away")]
    watcher.add(source.read, seen)
    seen.wait_equal(0)
    assert source.reads.values == [0, 0, 0]


def test_damage_is_not_retried(watcher: Watcher) -> None:
    """Bytes that cannot be parsed are logged once; the next change is read again."""
    source, seen = Source(), Seen()
    source.failures = [MetadataSerializationError("broken")]
    watch = watcher.add(source.read, seen)
    source.reads.wait_equal(0)
    source.value = 5
    watch.touch()
    seen.wait_equal(5)
    assert seen.values == [5]


def test_a_broken_listener_hurts_only_itself(watcher: Watcher, caplog: pytest.LogCaptureFixture) -> None:
    """Its error is logged with the topic; other watches are not affected."""
    source, seen = Source(), Seen()

    def broken(_value: int) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        watcher.add(source.read, broken, topic="broken/")
        watcher.add(source.read, seen)
        seen.wait_equal(0)
    assert "the listener of a watch failed topic=broken/" in caplog.text


def test_topics_are_prefixes(watcher: Watcher) -> None:
    """A key wakes the watches whose topic is its prefix; an empty key wakes all."""
    ledgers, bookies = Source(), Source()
    told_ledgers, told_bookies = Seen(), Seen()
    watcher.add(ledgers.read, told_ledgers, topic="ledgers/")
    watcher.add(bookies.read, told_bookies, topic="bookies/")
    told_ledgers.wait_equal(0)
    told_bookies.wait_equal(0)
    ledgers.value = bookies.value = 1
    watcher.wake_topic("ledgers/5")
    told_ledgers.wait_equal(1)
    assert told_bookies.values == [0]
    watcher.wake_topic("")
    told_bookies.wait_equal(1)


def test_a_change_is_told_in_the_order_of_the_watches(watcher: Watcher) -> None:
    """Watches that one change wakes are read in the order in which they were added, not in that of their addresses."""
    source, seen, numbers = Source(), Seen(), range(200)
    for number in numbers:
        watcher.add(source.read, lambda value, number=number: seen(value * len(numbers) + number))  # type: ignore[misc]
    seen.wait_equal(numbers[-1])
    source.value = 1
    watcher.wake_topic("")
    seen.wait_equal(len(numbers) + numbers[-1])
    assert seen.values == list(range(2 * len(numbers)))


def test_close_waits_for_the_listener(watcher: Watcher) -> None:
    """When close returns, the listener is not running and will not run again."""
    entered, leave = threading.Event(), threading.Event()
    running: list[bool] = []

    def slow(_value: int) -> None:
        running.append(True)
        entered.set()
        leave.wait()
        running.pop()

    watch = watcher.add(Source().read, slow)
    entered.wait()
    closer = threading.Thread(target=watch.close)
    closer.start()
    assert running
    leave.set()
    closer.join()
    assert not running
    entered.clear()
    watch.touch()
    reported = Seen()
    watcher.add(Source().read, reported)
    reported.wait_equal(0)
    assert not entered.is_set()
