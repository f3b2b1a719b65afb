"""What commands say if no process is elected auditor, so that nothing looks for lost bookies and replicas."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bookie.metadata.driver import MetadataDriver

__all__ = ["NO_AUDITOR", "REMEDY", "warn_without_auditor"]

REMEDY = "set autoRecoveryDaemonEnabled on a bookie, or run bkadmin autorecovery"
NO_AUDITOR = f"no auditor is elected; {REMEDY}"


def warn_without_auditor(driver: "MetadataDriver", undone: str = "looks for lost replicas") -> None:
    """Print on standard error that no auditor is elected, if that is so, and what is not done therefore: an empty list
    of marked ledgers then says nothing, and marked ledgers stay marked.
    """
    if driver.election.auditor() is None:
        click.echo(f"no auditor is elected, so nothing {undone}; {REMEDY}", err=True)
