"""How the compiled modules were built, and how the kernel schedules and shows the threads of this process. Any thread.

Threads of the data path compete with policy threads, which may be busy in Python. A thread with a shorter time slice
has an earlier deadline, and preempts one with a longer slice when it wakes (EEVDF, Linux 6.12 and later;
sched_setattr(2)). This needs no privilege and gives the thread no larger share of the processor. Older kernels ignore
or refuse the request, which only costs latency while other threads are busy. Background threads request the lowest
priority for processor and disk.
"""
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

cdef extern from "<sys/syscall.h>" nogil:
    long SYS_ioprio_set
    long SYS_sched_setattr

cdef extern from "<sys/prctl.h>" nogil:
    int prctl(int option, ...) noexcept
    int PR_SET_NAME

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
    uint64_t runtime         # for SCHED_OTHER: the requested slice in nanoseconds
    uint64_t deadline
    uint64_t period

cdef enum:
    SCHED_OTHER = 0
    SLICE_NS = 100000        # the shortest that the kernel grants
    NICE_LAST = 19
    IOPRIO_WHO_PROCESS = 1   # means a thread
    NAME_MOST = 15
    IOPRIO_IDLE = 3 << 13    # served when no other request waits, by I/O schedulers that support it


def flavour() -> str:
    """Return `debug` (bounds checks, asserts) or `release`."""
    return "debug" if DEBUG_BUILD else "release"


def faults() -> bool:
    """Return whether tests can plant bugs and disk faults in this build."""
    return FAULTS_BUILD


def wish_short_slice() -> bool:
    """Request the shortest time slice for the calling thread; return False if the kernel does not support that."""
    cdef SchedAttr attr
    memset(&attr, 0, sizeof(attr))
    attr.size = sizeof(attr)
    attr.policy = SCHED_OTHER
    attr.nice = getpriority(PRIO_PROCESS, 0)
    attr.runtime = SLICE_NS
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0


def wish_background() -> bool:
    """Give the calling thread the lowest priority for processor and disk; return False if the kernel refuses either.
    """
    cdef bint last = setpriority(PRIO_PROCESS, 0, NICE_LAST) == 0
    return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE) == 0 and last


def show_name(name: str) -> None:
    """Let the system show the calling thread by this name, of which it keeps 15 bytes: `top -H`, `perf`, `gdb`."""
    cdef bytes shown = name.encode()[:NAME_MOST]
    prctl(PR_SET_NAME, <char*> shown, 0, 0, 0)
