"""The world of one seed: a loop, bookies, a store, and clients that reach them over links of their own."""

import random
import zlib
from collections.abc import Collection

from bookie.client.config import ClientConfig
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from tests.sim.client_bookies import ClientBookies
from tests.sim.draw import Draw
from tests.sim.events import Event
from tests.sim.loop import VirtualLoop
from tests.sim.model_bookie import ModelBookie
from tests.sim.model_store import ClientStore, ModelStore
from tests.sim.nemesis import Nemesis
from tests.sim.network import Link

__all__ = ["Name", "World"]


class Name(str):
    """A bookie's id whose hash is the same in every process, and with it the order of sets."""

    __slots__ = ()

    def __hash__(self) -> int:
        return zlib.crc32(self.encode())


class World:
    """The world. `bugs` are planted in its bookies; `first_s` is when things begin to happen."""

    def __init__(self, draw: Draw, rng: random.Random, bugs: Collection[str] = ()) -> None:
        self.draw = draw
        self.rng = rng
        self.loop = VirtualLoop()
        self.history: list[Event] = []
        self.store = ModelStore(self.loop, self.history, self._look_at_change)
        self.stores: list[ClientStore] = []
        self.clients: dict[str, ClientBookies] = {}
        self.bookies: dict[str, ModelBookie] = {}
        self.first_s = 6 * draw.store_s
        for number in range(draw.bookies):
            name = Name(f"bookie{number}:3181")
            bookie = ModelBookie(name, self.loop, random.Random(rng.random()), bugs)
            bookie.sync_s = rng.uniform(*draw.sync_s)
            bookie.read_s = rng.uniform(*draw.sync_s) / 4
            self.bookies[name] = bookie
        self.register()

    def register(self) -> None:
        """Update which bookies are registered in the store, and how."""
        up = [bookie for bookie in self.bookies.values() if bookie.up]
        writable = frozenset(bookie.name for bookie in up if not bookie.read_only)
        self.store.set_bookies(writable, frozenset(bookie.name for bookie in up) - writable)

    def connect(self, who: str, config: ClientConfig) -> None:
        """Create what a new client uses of this world."""
        low, high = self.draw.base_s
        links = {}
        for name, bookie in self.bookies.items():
            base = low * (high / low) ** self.rng.random()
            links[name] = Link(self.loop, random.Random(self.rng.random()), bookie, base, base * self.rng.random())
        bookies = ClientBookies(self.loop, links, config, who, self.history)
        bookies.sender_limit = self.rng.choice((2, 5, 1000))
        if self.rng.random() < 0.2:
            bookies.no_batches = frozenset(self.rng.sample(sorted(self.bookies), 1))
        store = ClientStore(self.store, self.loop, random.Random(self.rng.random()), who)
        store.base_s = self.draw.store_s
        self.clients[who] = bookies
        self.stores.append(store)

    def store_of(self, who: str) -> ClientStore:
        """Return a client's connection to the store."""
        return next(store for store in self.stores if store.who == who)

    def nemesis(self, rng: random.Random) -> Nemesis:
        """Schedule the faults of this world."""
        return Nemesis(self, self.draw, rng)

    async def healed(self) -> None:
        """Wait until the bookies serve again after all faults have ended; modelled ones do at once."""

    def crash(self, who: str) -> None:
        """End a client's process."""
        self.say(who, "crashed")
        self.clients[who].crash()
        self.store_of(who).alive = False

    def say(self, who: str, what: str, ledger: int = -1, entry: int = -1, **more: object) -> None:
        """Record an event in the history, unless the client has crashed."""
        if self.clients[who].alive:
            self.history.append(Event(self.loop.time(), who, what, ledger, entry, **more))  # type: ignore[arg-type]

    def copies(self) -> dict[str, dict[int, bytes]]:
        """Return what each bookie holds of the one ledger."""
        return {
            name: {entry: stored for ledger in bookie.ledgers.values() for entry, stored in ledger.entries.items()}
            for name, bookie in self.bookies.items()
        }

    def lost(self) -> list[str]:
        """Return the bookies that have lost data."""
        return [name for name, bookie in self.bookies.items() if bookie.lost_data]

    def _look_at_change(self, who: str, ledger: int, before: LedgerMetadata, now: LedgerMetadata) -> None:
        """Record in the history what a change of metadata should not have done."""
        self._look_at_copies(who, ledger, before, now)
        if who == "replicator" and before.state is LedgerState.OPEN and now.state is LedgerState.IN_RECOVERY:
            self._look_for_reason(who, ledger, before)

    def _look_for_reason(self, who: str, ledger: int, before: LedgerMetadata) -> None:
        """Record in the history if auto-recovery fences a ledger of a healthy writer.

        Each of its bookies got each entry less than the grace after it was acknowledged, so none lacked the same
        entries at both looks. This is certain only in worlds without faults, and if no read takes too long.
        """
        trip_s = 2 * self.draw.base_s[1] + self.draw.sync_s[1]
        if self.draw.faults or not self.clients["writer"].alive or self.draw.config.read_timeout_s < 20 * trip_s:
            return
        acked = {event.entry: event.at for event in self.history if event.what == "acked"}
        now_s, grace_s = self.loop.time(), self.draw.grace_s
        for entry, at in acked.items():
            for name in before.write_set(entry):
                if self.bookies[name].arrived.get(entry, now_s) - at >= grace_s:
                    return
        self.history.append(Event(now_s, who, "hasty", ledger))

    def _look_at_copies(self, who: str, ledger: int, before: LedgerMetadata, now: LedgerMetadata) -> None:
        """Record in the history if the metadata names bookies for entries that they do not have.

        What is replaced in a closed ledger was copied before. A recovery writes entries again as a writer does: an ack
        quorum has each of them when it closes the ledger, and a bookie that has joined meanwhile may have failed, too.
        """
        if before.state is LedgerState.CLOSED:
            for segment, last in zip(now.segments, _ends(now), strict=True):
                old = next((one for one in before.segments if one.first_entry == segment.first_entry), segment)
                joined = {*segment.bookies} - {*old.bookies}
                for entry in range(segment.first_entry, last + 1):
                    for name in joined.intersection(now.write_set(entry)) - self._with(ledger, entry):
                        self.history.append(Event(self.loop.time(), who, "lacks", ledger, entry, name))
        elif now.state is LedgerState.CLOSED and who != "writer":
            for entry in range(now.last_entry + 1):
                named = {*now.write_set(entry)}
                having = named & self._with(ledger, entry)
                if len(having) < now.ack_quorum:
                    self.history.append(Event(self.loop.time(), who, "lacks", ledger, entry, min(named - having)))

    def _with(self, ledger: int, entry: int) -> set[str]:
        """Return the bookies that keep an entry, and those that lost data and with it the proof."""
        return {name for name, bookie in self.bookies.items() if bookie.lost_data or entry in bookie.durable(ledger)}

    def links_by_client(self) -> list[list[Link]]:
        return [list(client.links.values()) for client in self.clients.values()]

    def links(self) -> list[Link]:
        return [link for links in self.links_by_client() for link in links]


def _ends(metadata: LedgerMetadata) -> list[int]:
    """Return the last entry of each segment of a closed ledger."""
    return [*(one.first_entry - 1 for one in metadata.segments[1:]), metadata.last_entry]
