"""The halves of the write cache that were flushed and are kept. State only; module store.kept_halves explains it."""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.cache.pages cimport Region
from bookie._fast.cache.runs cimport RunMap
from bookie._fast.cache.write cimport Half

cdef enum:
    KEPT_MOST = 8
    REGIONS_MOST = KEPT_MOST + 2

cdef struct KeptMaps:
    # Of a shard, guarded by its lock.
    RunMap maps[KEPT_MOST]       # newest first; from `count` on they are empty
    uint32_t count

cdef struct KeptHalves:
    Half halves[KEPT_MOST]       # newest first; of the thread that flushes the directory
    uint32_t count               # the same
    int64_t bytes                # atomic; the memory that they take
    int64_t bytes_max            # atomic; what they and the half that is flushed may take; 0: none are kept
    Region regions[REGIONS_MOST]     # the memory of all halves, those that are not kept included; unused without `base`
    Region spare                 # memory that no half has at present; of the thread that flushes the directory
