"""Upgrades the table of runs to the version whose values form a chain, in transactions of bounded size.

Each transaction leaves a table with which the next one, or the next start, can continue: the head, which is put at the
very end, marks the chain as complete. Runs in the thread that opens the index, before any other uses it.
"""
from libc.stdint cimport uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.key cimport RunKey
from bookie._fast.index.table cimport RunWriter

cdef enum:
    UPGRADE_RUNS_A_COMMIT = 1 << 16

cdef struct Upgrade:
    # Zeroed before the first transaction.
    RunKey at                    # runs below this key are done
    uint64_t runs                # number of runs in the table at the beginning
    uint64_t seen
    bint begun
    bint done

# Upgrade as much as one transaction takes; `done` is set by the last one. An unreadable run stays as it is, for its
# readers to report. CORRUPT: the table does not hold as many runs as it says.
cdef Status run_upgrade_some(RunWriter* writer, Upgrade* upgrade) noexcept nogil
# Python does not see this module: the index calls it when it is opened.
