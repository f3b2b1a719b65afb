"""The command `bkadmin`: its help, and how its process is set up."""

import gc
import logging
import os
import sys
from collections.abc import Sequence

import click

from bookie import __version__
from bookie.terminal import lazy
from bookie_admin.bkadmin.catalogue import COMMANDS, INSTEAD
from bookie_admin.bkadmin.profiles import Profile, with_profile

__all__ = ["main", "run"]

NOBODY_ELSE = 0o077
"""The umask: files that a command writes for a bookie are accessible to their owner only, as those of the bookie
are.
"""
OBJECTS_MAX = 10_000
"""How many objects are allocated between two runs of Python's garbage collector. Imports create far more than the
default threshold, and none of it is garbage.
"""
EPILOG = """\b
EXIT CODES
  0  success
  1  failure; standard error says why, and what to do
  2  invalid command line
  3  partial result, or a problem was found: a bookie did not answer, a file is damaged
  130  interrupted; what was done until then stays
\b
ENVIRONMENT
  BOOKIE_METADATA_URI      default of --metadata-service-uri
  BOOKIE_CONF              default of --conf
  BOOKIE_ADMIN             default of --admin
  BOOKIE_ADMIN_TOKEN_FILE  default of --token-file
  BOOKIE_ADMIN_TLS_CA      default of --tls-ca
  BOOKIE_PROFILE           default of --profile
  BOOKIE_PROFILES          the file with profiles
\b
COMPLETION
  eval "$(_BKADMIN_COMPLETE=bash_source bkadmin)"    or zsh_source, fish_source
"""


@click.group(
    cls=lazy.LazyGroup,
    catalogue=COMMANDS,
    package="bookie_admin.bkadmin.commands",
    instead=INSTEAD,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@with_profile
@click.version_option(__version__, prog_name="bkadmin")
def bkadmin(profile: Profile | None) -> None:
    """Manage a BookKeeper cluster: bookies of this project or of Apache BookKeeper, their ledgers, and their files.

    Most commands have the names of Apache BookKeeper's shell. `bkadmin COMMAND --help` describes a command and its
    options.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    return lazy.run(bkadmin, "bkadmin", arguments)


def _quiet() -> None:
    """Silence the logs of libraries: a failed command prints one line, and logs would add one for every attempt.
    Commands that keep running switch logging on themselves.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC reads it when it is imported
    for name in ("bookie", "kazoo"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def main() -> None:
    """Run `bkadmin` with the arguments of the process and exit."""
    gc.set_threshold(OBJECTS_MAX)
    _quiet()
    os.umask(NOBODY_ELSE)
    code = run(sys.argv[1:])
    gc.freeze()  # otherwise the interpreter would scan all objects for garbage several times at exit
    sys.exit(code)


if __name__ == "__main__":
    main()
