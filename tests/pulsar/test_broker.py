"""A real Pulsar broker keeps its topics on our bookies: what it acknowledged is there, whoever was killed meanwhile.

It has its default settings except for sizes and the place of the ledgers: V2, and two replicas of everything.
"""

from functools import partial
from typing import Any

import pytest

from bookie.client import Channel
from bookie.errors import NoSuchLedger, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerState
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.frozen import freeze, thaw
from tests.pulsar.world import (
    MARKS,
    Pulsar,
    Sender,
    deliver,
    everything,
    numbered,
    received,
    settle,
    wait_for,
)

pytestmark = MARKS
WORLD = {"named": True, "v2": True}
"""It is told where the ledgers are."""


def once(messages: list[bytes]) -> list[bytes]:
    """Return the messages without those that a producer repeated because it had got no acknowledgement."""
    return list(dict.fromkeys(messages))


@pytest.mark.parametrize("batched", [False, True])
def test_messages_come_in_order(world: Pulsar, connected: Any, topic: str, batched: bool) -> None:
    """They do for a reader that listens while they are sent, for one that comes later, and for one that comes when no
    cache
    has them any more.
    """
    consumer = connected.subscribe(topic, "listening")
    deliver(connected, topic, range(2000), batched=batched)
    heard = received(consumer, 2000)
    assert [one.data() for one in heard] == numbered(0, 2000)
    assert everything(connected, topic) == numbered(0, 2000)
    assert len(world.ledgers(topic)) > 1
    consumer.close()
    world.broker.stop()
    for bookie in world.running():
        bookie.restart()
    world.broker.start()
    assert everything(connected, topic) == numbered(0, 2000)


def test_a_broker_that_was_killed_finds_its_topics(world: Pulsar, connected: Any, topic: str) -> None:
    """It recovers the ledger that it left open, a subscription goes on where it was, and pending messages arrive."""
    consumer = connected.subscribe(topic, "kept")
    sender = Sender(connected, topic)
    sender.deliver(range(150))
    consumer.acknowledge_cumulative(received(consumer, 150)[-1])
    wait_for(
        lambda: world.internal_stats(topic)["cursors"]["kept"]["cursorLedgerLastEntry"] >= 0,
        "it is stored how far one read",
    )
    pending = sender.send(range(150, 5000))
    settle(pending[:500])
    world.broker.kill()
    assert not all(one.done() for one in pending)
    world.broker.start()
    settle(pending)
    sender.close()
    found = everything(connected, topic)
    assert once(found) == numbered(0, 5000)
    *before, now = [world.client.ledger_metadata(ledger).state for ledger in world.ledgers(topic)]
    # A broker that is killed while it goes from one ledger to the next may leave the first one open for good.
    assert before.count(LedgerState.CLOSED) >= len(before) - 1
    assert now is LedgerState.OPEN
    assert [one.data() for one in received(consumer, len(found) - 150)] == found[150:]
    consumer.close()


def test_bookies_that_are_lost_are_replaced(world: Pulsar, connected: Any, topic: str) -> None:
    """One of the two that hold a ledger is lost, and then the other, after a new one joined and the first returned."""
    sender = Sender(connected, topic)
    sender.deliver(range(50))
    (ledger,) = world.ledgers(topic)
    one, other = (world.by_id(bookie) for bookie in world.client.ledger_metadata(ledger).segments[0].bookies)
    pending = sender.send(range(50, 100))
    one.kill()
    settle(pending)
    sender.deliver(range(100, 150))
    *_, segment = world.client.ledger_metadata(ledger).segments
    assert one.id not in segment.bookies
    (added,) = (bookie for bookie in world.bookies if not bookie.id)
    added.start()
    one.start()
    pending = sender.send(range(150, 1000))
    other.kill()
    settle(pending)
    sender.close()
    world.broker.stop()
    world.broker.start()
    assert once(everything(connected, topic)) == numbered(0, 1000)
    assert added.id in {
        bookie
        for ledger in world.ledgers(topic)
        for segment in world.client.ledger_metadata(ledger).segments
        for bookie in segment.bookies
    }
    other.start()


def test_a_broker_that_stood_still_writes_no_more(world: Pulsar, connected: Any, topic: str) -> None:
    """Another one took over its topic and fenced its ledger. What the first one must still write comes after that."""
    import pulsar

    sender = Sender(connected, topic)
    sender.deliver(range(100))
    (ledger,) = world.ledgers(topic)
    freeze(world.broker.process.pid)
    pending = sender.send(range(100, 200))
    second = world.second_broker.start()
    wait_for(lambda: len(second.admin("GET", "brokers/test")) == 1, "the first one is given up")
    client = pulsar.Client(second.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    deliver(client, topic, range(1000, 1100))
    closed = world.client.ledger_metadata(ledger)
    assert (closed.state, closed.last_entry) == (LedgerState.CLOSED, 99)
    assert not any(one.done() for one in pending)
    thaw(world.broker.process.pid)
    settle(pending)
    sender.close()
    assert once(everything(client, topic)) == [*numbered(0, 100), *numbered(1000, 1100), *numbered(100, 200)]
    assert world.client.ledger_metadata(ledger) == closed
    client.close()
    second.stop()


def test_what_nobody_needs_any_more_is_deleted(world: Pulsar, connected: Any, topic: str) -> None:
    """Bookies forget the ledgers that all subscriptions have read, and all ledgers of a topic that is deleted."""
    consumer = connected.subscribe(topic, "through")
    deliver(connected, topic, range(500))
    *_, last = received(consumer, 500)
    ledgers = world.ledgers(topic)
    assert len(ledgers) > 2
    consumer.acknowledge_cumulative(last)
    world.broker.admin("DELETE", f"persistent/{topic}/subscription/held")
    wait_for(lambda: world.ledgers(topic) == ledgers[-1:], "ledgers are trimmed")
    world.broker.stop()
    world.broker.start()
    deliver(connected, topic, range(500, 600))
    consumer.close()
    ledgers = [*ledgers, *world.ledgers(topic)]
    world.broker.admin("DELETE", f"persistent/{topic}?force=true")
    assert world.ledgers(topic) == []
    for ledger in ledgers:
        with pytest.raises(NoSuchLedgerMetadata):
            world.client.ledger_metadata(ledger)
    for bookie in world.running():
        wait_for(partial(knows_none, bookie, ledgers), "garbage is collected")


def knows_none(bookie: BookieProcess, ledgers: list[int]) -> bool:
    """Return whether the bookie has forgotten these ledgers, or never had them."""
    with Channel.connect("127.0.0.1", bookie.port) as channel:
        for ledger in ledgers:
            try:
                channel.read(ledger, 0)
            except NoSuchLedger:
                continue
            return False
    return True
