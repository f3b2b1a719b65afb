"""What the judge may still expect after a disk has lied or decayed.

Damage may cost data: reads may fail, and a start may be refused. It must never lead to a wrong answer. Bytes that
nobody wrote are wrong in any case. To deny an acknowledged entry is wrong, too, unless only the damaged place could
have proved that the entry exists: the end of the journal, or files whose sync was a lie.
"""

from tests.history.events import Event

__all__ = ["certain"]

ACKNOWLEDGED = ("add", "recovery_add", "fence")


def certain(history: list[Event]) -> list[Event]:
    """Return the history without what lies of the disk made uncertain.

    `doubt_journal` makes acknowledgements uncertain that were received since the last `flushed`; `doubt_syncs` also
    those of the run before, which the start of this run had flushed. `doubt_files` only excuses that entries cannot be
    read back.
    """
    flushed = started = 0
    uncertain: set[int] = set()
    damaged = False
    for at, event in enumerate(history):
        if event.op == "begin":
            started = flushed
        elif event.op == "flushed":
            flushed = at
        elif event.op.startswith("doubt"):
            damaged = True
            if event.op != "doubt_files":
                first = started if event.op == "doubt_syncs" else flushed
                uncertain.update(
                    i for i in range(first, at) if history[i].kind == "return" and history[i].op in ACKNOWLEDGED
                )
    hidden = ("verify", "verified") if damaged else ()
    return [event for at, event in enumerate(history) if at not in uncertain and event.op not in hidden]
