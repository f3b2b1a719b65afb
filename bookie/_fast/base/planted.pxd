"""Bugs that tests switch on to prove that they would detect them. None exist in a build without BOOKIE_FAULTS=1.

A module asks `bk_planted` at the very line that would be wrong. The answer is constant once the module is loaded; any
thread.
"""

cdef extern from "csrc/planted.h" nogil:
    enum:
        PLANT_SKIP_SYNC
        PLANT_ACK_EARLY
        PLANT_MARK_EARLY
        PLANT_FENCE_IN_MEMORY
        PLANT_NO_ENTRY_ON_EIO
        PLANT_ANY_KEY
        PLANT_GROUP_UNCHECKED
        PLANT_ACK_AFTER_FAILURE
        PLANT_UNLINK_EARLY
        PLANT_GONE_IS_NO_ENTRY
        PLANT_DELETE_INDEX_ONLY
    bint bk_planted(int bug) noexcept
