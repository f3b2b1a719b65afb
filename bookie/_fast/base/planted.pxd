"""Bugs that tests switch on to prove that they would be found. Nothing in a build without BOOKIE_FAULTS=1.

A module asks at the very line that would be wrong. Constant after the room is loaded; any thread.
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
