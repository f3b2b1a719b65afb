"""The command `bkpipe`: batch jobs on entire clusters, on this machine or on a Spark cluster. It imports only the job
that is called.
"""

import sys
from collections.abc import Sequence

import click

from bookie import __version__
from bookie.spark.jobs import JOBS
from bookie.terminal import lazy

__all__ = ["main", "run"]

EPILOG = """\b
RESUMING
  With --state DIRECTORY, a job records each finished unit of work there. The same call continues with the rest;
  a call with other options on the same directory is refused. Only one process may use a directory at a time.
\b
EXIT CODES
  0  success
  1  failure; standard error says why, and what to do
  2  invalid command line
  3  partial result, or a problem was found; the summary says which
  130  interrupted; what was done until then stays
\b
ENVIRONMENT
  BOOKIE_METADATA_URI  default of --metadata-service-uri
  BOOKIE_PASSWORD      default of --password
  SPARK_MASTER         default of --master
  JAVA_HOME            the Java installation that Spark uses
\b
COMPLETION
  eval "$(_BKPIPE_COMPLETE=bash_source bkpipe)"    or zsh_source, fish_source
"""


@click.group(
    cls=lazy.LazyGroup,
    catalogue=JOBS,
    package="bookie.spark.jobs",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="bkpipe")
def bkpipe() -> None:
    """Run batch jobs on entire clusters: copy ledgers out and in, audit replicas, and analyse usage.

    With --dry-run a job shows what it would do. It shows its progress on a terminal and ends with a summary: as a
    table, as JSON with -o json, and in a file with --summary. Jobs run on this machine, or on the Spark cluster that
    --master names.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one job and return its exit code."""
    return lazy.run(bkpipe, "bkpipe", arguments)


def main() -> None:
    """Run `bkpipe` with the arguments of the process and exit."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
