"""The command `bkadmin`."""

import gc
import logging
import os
import sys
from collections.abc import Sequence

import click

from admin.bkadmin.catalogue import COMMANDS, INSTEAD
from bookie import __version__
from bookie.terminal import lazy

__all__ = ["main", "run"]

NOBODY_ELSE = 0o077
"""What it writes for a bookie is as the bookie's own: for nobody else."""
OBJECTS_MAX = 10_000
"""Between two runs of the garbage collector. What a command imports is many times that, and no garbage."""
EPILOG = """\b
EXIT CODES
  0  done, and all is well
  1  not done: what stands on standard error is why, and what to do
  2  the command line is wrong
  3  done in part, or something is not well: a bookie is silent, a file is bad
  130  interrupted: what was done until then stays
\b
ENVIRONMENT
  BOOKIE_METADATA_URI  the cluster, where --metadata-service-uri is not given
  BOOKIE_CONF          a bookie's configuration, where --conf is not given
\b
COMPLETION
  eval "$(_BKADMIN_COMPLETE=bash_source bkadmin)"    or zsh_source, fish_source
"""


@click.group(
    cls=lazy.LazyGroup,
    catalogue=COMMANDS,
    package="admin.bkadmin.commands",
    instead=INSTEAD,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="bkadmin")
def bkadmin() -> None:
    """Look after a BookKeeper cluster: bookies of ours and of Apache BookKeeper, their ledgers, and their files.

    Commands have the names of Apache BookKeeper's shell. `bkadmin COMMAND --help` tells the rest.
    """


def run(arguments: Sequence[str]) -> int:
    """One call; the exit code."""
    return lazy.run(bkadmin, "bkadmin", arguments)


def _quiet() -> None:
    """What goes wrong is told in one line by us; logs would tell each attempt, too. What runs long turns them on."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when it is loaded
    for name in ("bookie", "kazoo"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def main() -> None:
    """The entry point."""
    gc.set_threshold(OBJECTS_MAX)
    _quiet()
    os.umask(NOBODY_ELSE)
    code = run(sys.argv[1:])
    gc.freeze()  # the end of the process would look through all there is for garbage, several times
    sys.exit(code)


if __name__ == "__main__":
    main()
