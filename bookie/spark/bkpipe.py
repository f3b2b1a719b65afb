"""The command `bkpipe`: whole-cluster jobs, on this machine or on a Spark cluster. Loads only the job that is named."""

import sys
from collections.abc import Sequence

import click

from bookie import __version__
from bookie.spark.jobs import JOBS
from bookie.terminal import lazy

__all__ = ["main", "run"]

EPILOG = """\b
RESUMING
  With --state DIRECTORY a job notes there each unit of work that is done. The same call again does the rest only;
  a call with other options on the same directory is refused. Nobody else may use the directory meanwhile.
\b
EXIT CODES
  0  done, and all is well
  1  not done: what stands on standard error is why, and what to do
  2  the command line is wrong
  3  done in part, or something is not well: what was not done, or not well, is in the summary
\b
ENVIRONMENT
  BOOKIE_METADATA_URI  the cluster, where --metadata-service-uri is not given
  BOOKIE_PASSWORD      the password of the ledgers, where --password is not given
  SPARK_MASTER         where Spark runs, where --master is not given
  JAVA_HOME            the Java that Spark runs on
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
    """Jobs on whole clusters of bookies: out of ledgers and into them, and what is stored where and how well.

    Each says with --dry-run what it would do, shows its progress on a terminal, and ends with a summary: for people,
    for programs with -o json, and in a file with --summary. Jobs run on this machine, or where --master says.
    """


def run(arguments: Sequence[str]) -> int:
    """One call; the exit code."""
    return lazy.run(bkpipe, "bkpipe", arguments)


def main() -> None:
    """The entry point."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
