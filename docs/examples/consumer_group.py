"""A group of processes that share the ledgers of a log, so that each ledger is read by one of them.

python docs/examples/consumer_group.py zk+hierarchical://h1:2181/ledgers

The log `orders` lists the ledgers that nobody has read yet. A consumer first puts a ledger into its own log, and then
takes it out of `orders`, which succeeds for one consumer only. When it has read the ledger, it takes it out of its own
log, too. If a consumer dies, the ledgers of its log go back to `orders`. So every entry is read at least once.
"""

import multiprocessing
import sys
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from bookie.client import BookKeeper
from bookie.metadata.records.logs import Log

ORDERS = "orders"


class Taken(Exception):
    """Another consumer was faster."""


def fill(bk: BookKeeper, ledgers: int, entries: int) -> None:
    """Write ledgers, and list them in the log."""
    for _ in range(ledgers):
        with bk.create_ledger(write_quorum_size=3) as ledger:
            for number in range(entries):
                ledger.append_async(b'{"order": %d}' % number)
        bk.logs.append(ORDERS, [ledger.id])


def claim(bk: BookKeeper, own: str) -> int | None:
    """Take the next ledger of the log; return None if there is none."""
    while ledgers := bk.logs.get(ORDERS).value.ledgers:
        ledger = ledgers[0]

        def take(log: Log, ledger: int = ledger) -> Log:
            if ledger not in log.ledgers:
                raise Taken
            return replace(log, ledgers=tuple(one for one in log.ledgers if one != ledger))

        bk.logs.append(own, [ledger])
        try:
            bk.logs.update(ORDERS, take)
        except Taken:
            bk.logs.remove(own, [ledger])
        else:
            return ledger
    return None


def consume(uri: str, own: str, results: Connection) -> None:
    """Read ledgers as long as there are any, and send the number of entries of each. Runs in a process of its own."""
    with BookKeeper(uri) as bk:  # each process opens its own: a client cannot be used after a fork
        while (ledger := claim(bk, own)) is not None:
            with bk.open_ledger(ledger) as reader:
                results.send((ledger, sum(len(batch) for batch in reader.batches())))
            bk.logs.remove(own, [ledger])


def run(uri: str, consumers: int, *, kill: str = "") -> dict[int, int]:
    """Run a group until all ledgers are read; return the number of entries of each. The consumer `kill` is killed once
    it has sent its first result, to show that nothing is lost.
    """
    spawn = multiprocessing.get_context("spawn")
    running: dict[Connection, tuple[multiprocessing.process.BaseProcess, str]] = {}
    found: dict[int, int] = {}

    def start(own: str) -> None:
        ours, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(target=consume, args=(uri, own, theirs))
        process.start()
        theirs.close()
        running[ours] = process, own

    with BookKeeper(uri) as bk:
        for number in range(consumers):
            start(f"{ORDERS}-{number}")
        while running:
            for ours in wait(list(running)):
                assert isinstance(ours, Connection)
                process, own = running[ours]
                try:
                    ledger, entries = ours.recv()
                except EOFError:  # it has ended
                    process.join()
                    del running[ours]
                    if process.exitcode:
                        print(f"{own} died: its ledgers go back")
                        back = bk.logs.append(own, []).value.ledgers
                        bk.logs.append(ORDERS, back)
                        bk.logs.delete(own)
                        start(own)
                    continue
                found[ledger] = entries
                if own == kill:
                    kill = ""
                    process.kill()
    return found


if __name__ == "__main__":
    with BookKeeper(sys.argv[1]) as client:
        fill(client, ledgers=12, entries=1000)
    read = run(sys.argv[1], consumers=3, kill=f"{ORDERS}-0")
    print(f"{sum(read.values())} entries of {len(read)} ledgers")
