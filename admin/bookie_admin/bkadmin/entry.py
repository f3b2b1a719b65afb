"""The entry point of the command `bkadmin`. Its imports are those of `main`, and Ctrl-C may come while they run."""

import sys

__all__ = ["main"]

EXIT_INTERRUPTED = 130
"""That of `bookie.terminal.lazy`, which imports click: an interruption may come then."""


def main() -> None:
    """Run `bkadmin` with the arguments of the process and exit."""
    try:
        from bookie_admin.bkadmin import main as command  # noqa: PLC0415 - an interruption of it is caught here
    except KeyboardInterrupt:
        sys.stderr.write("bkadmin: interrupted; nothing was done\n")
        sys.exit(EXIT_INTERRUPTED)
    command.main()
