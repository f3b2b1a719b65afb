"""The table of runs brought to the version whose values form a chain, in transactions of bounded size.

Each one leaves a table that the next one, or the next start, goes on with: it is the head, put at the very end, that
says that the chain is whole. Used by the thread that opens an index, before anyone else.
"""
from libc.stdint cimport uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.key cimport RunKey
from bookie._fast.index.table cimport RunWriter

cdef enum:
    UPGRADE_RUNS_A_COMMIT = 1 << 16

cdef struct Upgrade:
    # Zeroed before the first transaction.
    RunKey at                    # the runs below are done
    uint64_t runs                # of the table when it began
    uint64_t seen
    bint begun
    bint done

# As much as one transaction takes; it is the last one when `done` is set. A run that cannot be read stays as it is, for
# its readers to find. CORRUPT: the table does not hold as many runs as it says.
cdef Status run_upgrade_some(RunWriter* writer, Upgrade* upgrade) noexcept nogil
# No Python surface: the index does this when it is opened.
