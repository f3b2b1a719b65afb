"""The command `bookie-server`: its options and its help; `running` does the work.

Nothing else is imported before the options are known, so that help comes at once.
"""

import gc
import os
import sys
from pathlib import Path

import click

from bookie import __version__

__all__ = ["main"]

EXIT_BAD_INPUT = 1
DESCRIPTION = """Run one bookie: a server that stores the entries of ledgers for clients of Apache BookKeeper.

The configuration is a properties file with Apache BookKeeper's key names; environment variables BK_KEY override it.
docs/configuration.md describes every key with its default and its range; --keys prints the same.

\b
SIGNALS
  SIGTERM, SIGINT   stop: unregister, send outstanding responses, flush,
                    close, exit 0; a second signal: do not wait for
                    responses; a third: exit at once (the journal has
                    everything)

\b
EXIT CODES
  0  stopped as requested                  3  metadata store out of reach at the
  1  bad input, nothing was changed           start, or session lost for good
  2  unexpected error, or the stop took    4  another process is registered
     too long                                 under this id
                                           5  the bookie failed: write or sync
                                              error, dead thread
  130  interrupted before the start began, by Ctrl-C; nothing was done

\b
ENVIRONMENT
  BOOKIE_CONF          the configuration file, if --conf is not given
  BK_KEY               overrides KEY of the file, e.g. BK_bookiePort=3999
  NOTIFY_SOCKET        set by systemd, which is notified when clients are
                       served, when the bookie stops and, with WATCHDOG_USEC,
                       that it is alive
  BOOKIE_SPIN_THREADS  number of Python threads that only burn CPU; for
                       measurements of the data path, never in production

\b
EXAMPLES
  bookie-server --conf conf/standalone.conf
  BK_bookiePort=3999 bookie-server --conf bk.conf --check
  bookie-server --conf bk.conf --init-cluster   once for each cluster
"""


class _Command(click.Command):
    """The command. An option that is not one is bad input, for which supervisors do not start it again."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.show()
            ctx.exit(EXIT_BAD_INPUT)


@click.command(
    cls=_Command,
    help=DESCRIPTION,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--conf", type=click.Path(path_type=Path), envvar="BOOKIE_CONF", help="The configuration file.")
@click.option("--check", is_flag=True, help="Check the configuration, and the directories and the token and"
              " certificate files that it names, without starting anything; exit with 0 or 1. A key that is not known"
              " and looks like a known one fails the check; a start only warns of it.")  # fmt: skip
@click.option("--init-cluster", is_flag=True, help="Create a new cluster in the metadata store, without starting a"
              " bookie.")  # fmt: skip
@click.option("--keys", is_flag=True, help="Print all configuration keys as in docs/configuration.md.")
@click.option("--ready-fd", type=click.IntRange(1), metavar="N", help="When clients are served, write the line"
              " `HOST:PORT id=BOOKIE-ID admin=HOST:PORT` to this inherited descriptor and close it.")  # fmt: skip
@click.version_option(__version__, "--version", "-V", prog_name="bookie-server")
def main(conf: Path | None, *, check: bool, init_cluster: bool, keys: bool, ready_fd: int | None) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start a thread for each other processor
    gc.disable()  # what is imported lives as long as the process, so looking for garbage among it finds nothing
    from bookie.server import running  # noqa: PLC0415 - as above

    try:
        code = running.print_keys() if keys else running.run(conf, ready_fd, check=check, init_cluster=init_cluster)
    finally:
        running.leave_out_of_collections()  # otherwise the interpreter would scan all objects several times at exit
    sys.exit(code)


if __name__ == "__main__":
    main()
