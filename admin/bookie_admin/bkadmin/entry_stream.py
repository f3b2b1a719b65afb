"""What the commands that print entries share: the ledger or the log, and printing its batches."""

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bookie.terminal.output import show_again
from bookie_admin.bkadmin.options import ID, log_names

if TYPE_CHECKING:
    from bookie.client import BookKeeper, EntryBatch

__all__ = ["printed", "Source", "with_source"]


@dataclass(frozen=True, slots=True)
class Source:
    """One ledger, or the log whose ledgers are read one after another.

    Attributes:
        ledger: the id of the ledger, or None.
        log: the name of the log, or None.
        password: the password; None takes it from the metadata of each ledger.
    """

    ledger: int | None
    log: str | None
    password: bytes | None

    def ledgers(self, client: "BookKeeper") -> list[int]:
        """Return the ledgers of the source.

        Raises:
            NoSuchLog: there is no such log.
        """
        return [self.ledger] if self.ledger is not None else list(client.logs.get(self.log or "").value.ledgers)


def with_source(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a ledger or a log; the command receives them as `source`."""

    @functools.wraps(function)
    def with_it(*args: Any, ledger: int | None, log: str | None, password: str | None, **options: Any) -> None:
        if (ledger is None) == (log is None):
            raise click.UsageError("name either a LEDGER or a log with --log")
        function(*args, source=Source(ledger, log, None if password is None else password.encode()), **options)

    for option in (
        click.option("--password", help="Password of the ledgers. Default: as in the metadata."),
        click.option("--log", metavar="NAME", shell_complete=log_names, help="Read the ledgers of this log in order."),
        click.argument("ledger", type=ID, required=False),
    ):
        with_it = option(with_it)
    return with_it


def printed(output: str, ledger: int, batches: "Iterable[EntryBatch]") -> None:
    """Print batches as they come: payloads as lines, or ids and payloads as JSON or YAML."""
    out = sys.stdout.buffer
    for batch in batches:
        for entry in batch:
            if output == "table":
                out.write(entry.payload)
                out.write(b"\n")
            else:
                text = entry.payload.decode("utf-8", "backslashreplace")
                show_again(output, "", ledger=ledger, entry=entry.id, data=text)
        out.flush()
