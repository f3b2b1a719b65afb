"""The events of a simulated world, in the order of its clock: the history that the judge reads.

    what        who        says
    asked       client     append of `value` (payload) was called; `entry` counts the calls of that writer
    acked       client     append number `number` returned `entry`, with `value` its payload
    taken       client     as `acked`, but not durable yet, since its sync was deferred
    forced      client     everything taken up to `entry` is acknowledged now
    failed      client     append number `number` raised an error, `code` its class's
    lac         client     a handle (`number` says which) showed the LAC `entry`
    read        client     `entry` was served with the payload `value`
    unread      client     a read of `entry` ended with the error `code`
    opened      client     an open with recovery ended: last entry `entry`, `number` bytes
    closed      client     a close by the writer succeeded: last entry `entry`, `number` bytes
    gave_up     client     any other call ended with the error `code`; `value` says which
    stored      client     the store accepted metadata: `value` (metadata), `number` its version
    lacks       client     what it stored names `value` (bookie) for `entry`, which it does not have
    hasty       client     it fences a ledger, none of whose bookies lacked an entry for as long as the grace
    answered    client     a bookie's answer to a fencing read arrived: `value` (bookie), `code`; entry -1: the fence
    crashed     client     it has crashed

`at` is in seconds. A client that crashed has no later events.
"""

from typing import Any, NamedTuple

__all__ = ["Event"]


class Event(NamedTuple):
    """An event, which is one line of the history."""

    at: float
    who: str
    what: str
    ledger: int = -1
    entry: int = -1
    value: Any = None
    code: int = 0
    number: int = 0

    def line(self) -> str:
        """Return the event as a trace shows it."""
        value = self.value if not isinstance(self.value, bytes) else self.value.hex()[:16]
        return (
            f"{self.at:10.6f} {self.who:8} {self.what:9} ledger {self.ledger} entry {self.entry}"
            f" code {self.code} number {self.number} {value or ''}"
        )
