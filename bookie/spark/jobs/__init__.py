"""The jobs of `bkpipe`: name, section and summary. This package holds data only, so that `bkpipe --help` imports no
job.

Each job has a module of its name, with underscores, whose `command` is its click command. bookie/spark/job.py has what
all jobs share.
"""

from bookie.terminal.lazy import Command

__all__ = ["JOBS"]

MOVING, LOOKING, MODELS = "Moving data", "Analysing a cluster", "Simulation"

JOBS: dict[str, Command] = {
    "export": Command(MOVING, "Write ledgers as Parquet, with a manifest of counts and CRCs."),
    "import": Command(MOVING, "Create new ledgers from an export, and a map of ids."),
    "rereplicate": Command(MOVING, "Copy the ledgers of lost bookies to others, or repair what an audit found."),
    "thrash": Command(LOOKING, "Compute disk reads per entry by cache size and readahead, from access logs."),
    "audit": Command(LOOKING, "Compare all replicas of all ledgers: what is missing or differs."),
    "diff": Command(LOOKING, "Compare the ledgers of two clusters."),
    "logscan": Command(LOOKING, "Scan entry log files for garbage, deletable logs and damage."),
    "usage": Command(LOOKING, "Sum up bytes by a key of the ledgers' custom metadata."),
    "simulate-placement": Command(MODELS, "Simulate how a cluster fills up under placement policies."),
}
