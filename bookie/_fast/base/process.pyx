"""How the compiled modules were built, and how the kernel schedules the threads of this process. Any thread.

Data threads compete with policy threads, which may be busy in Python. A thread with a shorter slice has an earlier
deadline and preempts one with a longer slice when it wakes (EEVDF, Linux 6.12 and later; sched_setattr(2)). It needs no
privilege and takes no larger share of the processor. Older kernels ignore or refuse the request; nothing depends on it
but latency beside busy threads. Work that can wait says so, too.
"""
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

cdef extern from "<sys/syscall.h>" nogil:
    long SYS_ioprio_set
    long SYS_sched_setattr

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...) noexcept

cdef extern from "<sys/resource.h>" nogil:
    int getpriority(int which, int who) noexcept
    int setpriority(int which, int who, int nice) noexcept
    int PRIO_PROCESS

cdef struct SchedAttr:
    uint32_t size
    uint32_t policy
    uint64_t flags
    int32_t nice
    uint32_t priority
    uint64_t runtime         # of SCHED_OTHER: the wished slice in nanoseconds
    uint64_t deadline
    uint64_t period

cdef enum:
    SCHED_OTHER = 0
    SLICE_NS = 100000        # the shortest that the kernel grants
    NICE_LAST = 19
    IOPRIO_WHO_PROCESS = 1   # which is a thread
    IOPRIO_IDLE = 3 << 13    # served when nobody else asks, by schedulers that know of it


def flavour() -> str:
    """`debug` (bounds checks, asserts) or `release`."""
    return "debug" if DEBUG_BUILD else "release"


def faults() -> bool:
    """Whether tests can plant bugs and disk faults in this build."""
    return FAULTS_BUILD


def wish_short_slice() -> bool:
    """Ask for the shortest slice for the calling thread; False when the kernel does not grant wishes."""
    cdef SchedAttr attr
    memset(&attr, 0, sizeof(attr))
    attr.size = sizeof(attr)
    attr.policy = SCHED_OTHER
    attr.nice = getpriority(PRIO_PROCESS, 0)
    attr.runtime = SLICE_NS
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0


def wish_background() -> bool:
    """Let the calling thread come last, at the processor and at the disk; False when the kernel refuses either."""
    cdef bint last = setpriority(PRIO_PROCESS, 0, NICE_LAST) == 0
    return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE) == 0 and last
