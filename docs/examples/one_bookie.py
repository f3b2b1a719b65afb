"""Write to one bookie, read back and fence: `python docs/examples/one_bookie.py [host:port]` after `make run`.

A channel talks to a single bookie. Choosing bookies, replicating entries and closing ledgers are the work of the client
`bookie.client.BookKeeper`; here the program chooses the ledger id itself.
"""

import sys
import time
from typing import assert_type

from bookie.client import Channel, Digest, StoredBatch
from bookie.errors import LedgerFenced


def main(address: str) -> None:
    """Add three entries, read them one by one and as a batch, then fence the ledger."""
    host, _, port = address.rpartition(":")
    digest = Digest.of(password=b"secret")
    ledger = time.time_ns()
    payloads = [b"one", b"two", b"three"]

    with Channel.connect(host, int(port)) as channel:
        length = 0
        for entry, payload in enumerate(payloads):
            length += len(payload)
            channel.add(ledger, entry, payload, digest=digest, lac=entry - 1, length=length)

        stored = channel.read(ledger, 1)
        assert_type(stored, bytes)
        print("entry 1:", digest.open(stored, ledger, 1).payload.tobytes().decode())

        batch = channel.batch_read(ledger, 0, max_count=100)
        assert_type(batch, StoredBatch)
        batch.verify(digest)
        for entry, view in batch.payloads(digest):
            print(f"entry {entry}:", view.tobytes().decode())

        channel.fence(ledger, digest.master_key)
        try:
            channel.add(ledger, 3, b"late", digest=digest, lac=2, length=length + 4)
        except LedgerFenced:
            print("the ledger is fenced")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:3181")
