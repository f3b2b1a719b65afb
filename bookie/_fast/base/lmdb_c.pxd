"""LMDB 0.9's C functions, from the compiled module of the `lmdb` package, so that a process has one copy of it.

They are resolved once at import, and can be called without the GIL. LMDB's own rules for threads hold: one write
transaction at a time, begun and ended by the same thread; a read transaction (MDB_NOTLS) is used by one thread at a
time.
"""
from libc.stdint cimport int64_t
from posix.types cimport mode_t

from bookie._fast.base.types cimport Status

cdef extern from "csrc/lmdb_c.h" nogil:
    ctypedef struct MDB_env:
        pass
    ctypedef struct MDB_txn:
        pass
    ctypedef struct MDB_cursor:
        pass
    ctypedef unsigned int MDB_dbi

    ctypedef struct MDB_val:
        # Data returned by LMDB lies in its memory map, and is valid until the next write or the end of the
        # transaction.
        size_t mv_size
        void* mv_data

    ctypedef struct MDB_stat:
        unsigned int ms_psize
        size_t ms_branch_pages
        size_t ms_leaf_pages
        size_t ms_overflow_pages
        size_t ms_entries

    ctypedef struct MDB_envinfo:
        size_t me_mapsize
        size_t me_last_pgno

    ctypedef struct Mdb:
        char* (*version)(int* major, int* minor, int* patch) noexcept nogil
        char* (*strerror)(int error) noexcept nogil
        int (*env_create)(MDB_env** env) noexcept nogil
        int (*env_set_mapsize)(MDB_env* env, size_t size) noexcept nogil
        int (*env_set_maxdbs)(MDB_env* env, MDB_dbi dbs) noexcept nogil
        int (*env_set_maxreaders)(MDB_env* env, unsigned int readers) noexcept nogil
        int (*env_open)(MDB_env* env, const char* path, unsigned int flags, mode_t mode) noexcept nogil
        int (*env_info)(MDB_env* env, MDB_envinfo* info) noexcept nogil
        int (*env_get_fd)(MDB_env* env, int* fd) noexcept nogil
        void (*env_close)(MDB_env* env) noexcept nogil
        int (*reader_check)(MDB_env* env, int* dead) noexcept nogil
        int (*txn_begin)(MDB_env* env, MDB_txn* parent, unsigned int flags, MDB_txn** txn) noexcept nogil
        int (*txn_commit)(MDB_txn* txn) noexcept nogil
        void (*txn_abort)(MDB_txn* txn) noexcept nogil
        void (*txn_reset)(MDB_txn* txn) noexcept nogil
        int (*txn_renew)(MDB_txn* txn) noexcept nogil
        int (*dbi_open)(MDB_txn* txn, const char* name, unsigned int flags, MDB_dbi* dbi) noexcept nogil
        int (*stat)(MDB_txn* txn, MDB_dbi dbi, MDB_stat* stat) noexcept nogil
        int (*get)(MDB_txn* txn, MDB_dbi dbi, MDB_val* key, MDB_val* data) noexcept nogil
        int (*put)(MDB_txn* txn, MDB_dbi dbi, MDB_val* key, MDB_val* data, unsigned int flags) noexcept nogil
        int (*remove "del")(MDB_txn* txn, MDB_dbi dbi, MDB_val* key, MDB_val* data) noexcept nogil
        int (*cursor_open)(MDB_txn* txn, MDB_dbi dbi, MDB_cursor** cursor) noexcept nogil
        void (*cursor_close)(MDB_cursor* cursor) noexcept nogil
        int (*cursor_renew)(MDB_txn* txn, MDB_cursor* cursor) noexcept nogil
        int (*cursor_get)(MDB_cursor* cursor, MDB_val* key, MDB_val* data, int operation) noexcept nogil
        int (*cursor_put)(MDB_cursor* cursor, MDB_val* key, MDB_val* data, unsigned int flags) noexcept nogil
        int (*cursor_del)(MDB_cursor* cursor, unsigned int flags) noexcept nogil

cdef enum:
    MDB_CREATE = 0x40000
    MDB_RDONLY = 0x20000
    MDB_NOTLS = 0x200000
    MDB_NORDAHEAD = 0x800000
    MDB_CURRENT = 0x40           # cursor_put: replace the value at the cursor
    MDB_RESERVE = 0x10000        # put: return space for the value instead of copying it

    MDB_NOTFOUND = -30798
    MDB_PAGE_NOTFOUND = -30797
    MDB_CORRUPTED = -30796
    MDB_INVALID = -30793
    MDB_MAP_FULL = -30792
    MDB_READERS_FULL = -30790
    MDB_CURSOR_FULL = -30787
    MDB_PAGE_FULL = -30786
    MDB_INCOMPATIBLE = -30784
    MDB_PROBLEM = -30779

    # cursor operations
    MDB_FIRST = 0
    MDB_LAST = 6
    MDB_NEXT = 8
    MDB_PREV = 12
    MDB_SET_RANGE = 17

cdef Mdb mdb

# How often a write found the map of an environment full: address space ran out, not disk space. Atomic.
cdef int64_t mdb_full_maps

# Return the Status for an LMDB error: OK; NO_ENTRY for MDB_NOTFOUND; NO_SPACE for ENOSPC, EDQUOT and MDB_MAP_FULL;
# NO_MEMORY for ENOMEM; CORRUPT if LMDB found its file damaged; IO_ERROR for everything else.
cdef Status mdb_status(int error) noexcept nogil
