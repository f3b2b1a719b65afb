"""The jobs of `bkpipe`, one a file: names, sections and summaries. Data alone, so that --help loads none of them.

A module of the job's name, with underscores, has its `command`; bookie/spark/job.py tells what each can do.
"""

from bookie.terminal.lazy import Command

__all__ = ["JOBS"]

MOVING, LOOKING, MODELS = "Moving data", "Looking at a cluster", "What if"

JOBS: dict[str, Command] = {
    "export": Command(MOVING, "Ledgers as Parquet, with a manifest of counts and CRCs."),
    "import": Command(MOVING, "New ledgers of what was exported, and a map of ids."),
    "rereplicate": Command(MOVING, "What lost bookies held, copied to others: a plan, then paced copies."),
    "thrash": Command(LOOKING, "Disk reads per entry served, against cache size and readahead, from access logs."),
    "audit": Command(LOOKING, "Every replica of every ledger beside the others: what is missing or differs."),
    "diff": Command(LOOKING, "The ledgers of two clusters beside each other."),
    "logscan": Command(LOOKING, "Entry logs offline: garbage, logs that could go, damage."),
    "usage": Command(LOOKING, "Bytes by what ledgers say of themselves: a key of their custom metadata."),
    "simulate-placement": Command(MODELS, "How a cluster fills under placement policies, and where it runs hot."),
}
