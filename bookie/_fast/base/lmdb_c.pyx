"""Resolves LMDB's C functions from the `lmdb` package at import; importing fails without them."""
import importlib.util
import os

from libc.errno cimport EDQUOT, ENOMEM, ENOSPC

from bookie._fast.base.sync cimport bk_add
from bookie._fast.base.types cimport CORRUPT, IO_ERROR, NO_ENTRY, NO_MEMORY, NO_SPACE, OK, Status

cdef extern from "<dlfcn.h>" nogil:
    int RTLD_NOW
    int RTLD_NOLOAD
    void* dlopen(const char*, int) noexcept
    void* dlsym(void*, const char*) noexcept

cdef struct Symbol:
    const char* name
    void** target

REMEDY = "install the binary package lmdb>=3.0,<4 (pip install 'lmdb>=3.0,<4') and leave LMDB_FORCE_CFFI unset"


cdef void* open_module() except NULL:
    """Return the loaded library behind `lmdb.cpython`."""
    try:
        import lmdb
        import lmdb.cpython
    except ImportError as error:
        raise ImportError(f"LMDB cannot be loaded: {error}; {REMEDY}") from error
    if lmdb.Environment is not lmdb.cpython.Environment:
        raise ImportError(f"the lmdb package runs through cffi, which is a second copy of LMDB; {REMEDY}")
    path = importlib.util.find_spec("lmdb.cpython").origin
    cdef void* library = dlopen(os.fsencode(path), RTLD_NOLOAD | RTLD_NOW)
    if library == NULL:
        raise ImportError(f"{path} is imported but not a loaded library; {REMEDY}")
    return library


cdef int resolve() except -1:
    cdef void* library = open_module()
    cdef Symbol[27] symbols = [
        Symbol(b"mdb09_version", <void**> &mdb.version),
        Symbol(b"mdb09_strerror", <void**> &mdb.strerror),
        Symbol(b"mdb09_env_create", <void**> &mdb.env_create),
        Symbol(b"mdb09_env_set_mapsize", <void**> &mdb.env_set_mapsize),
        Symbol(b"mdb09_env_set_maxdbs", <void**> &mdb.env_set_maxdbs),
        Symbol(b"mdb09_env_set_maxreaders", <void**> &mdb.env_set_maxreaders),
        Symbol(b"mdb09_env_open", <void**> &mdb.env_open),
        Symbol(b"mdb09_env_info", <void**> &mdb.env_info),
        Symbol(b"mdb09_env_get_fd", <void**> &mdb.env_get_fd),
        Symbol(b"mdb09_env_close", <void**> &mdb.env_close),
        Symbol(b"mdb09_reader_check", <void**> &mdb.reader_check),
        Symbol(b"mdb09_txn_begin", <void**> &mdb.txn_begin),
        Symbol(b"mdb09_txn_commit", <void**> &mdb.txn_commit),
        Symbol(b"mdb09_txn_abort", <void**> &mdb.txn_abort),
        Symbol(b"mdb09_txn_reset", <void**> &mdb.txn_reset),
        Symbol(b"mdb09_txn_renew", <void**> &mdb.txn_renew),
        Symbol(b"mdb09_dbi_open", <void**> &mdb.dbi_open),
        Symbol(b"mdb09_stat", <void**> &mdb.stat),
        Symbol(b"mdb09_get", <void**> &mdb.get),
        Symbol(b"mdb09_put", <void**> &mdb.put),
        Symbol(b"mdb09_del", <void**> &mdb.remove),
        Symbol(b"mdb09_cursor_open", <void**> &mdb.cursor_open),
        Symbol(b"mdb09_cursor_close", <void**> &mdb.cursor_close),
        Symbol(b"mdb09_cursor_renew", <void**> &mdb.cursor_renew),
        Symbol(b"mdb09_cursor_get", <void**> &mdb.cursor_get),
        Symbol(b"mdb09_cursor_put", <void**> &mdb.cursor_put),
        Symbol(b"mdb09_cursor_del", <void**> &mdb.cursor_del),
    ]
    cdef int i
    for i in range(27):
        symbols[i].target[0] = dlsym(library, symbols[i].name)
        if symbols[i].target[0] == NULL:
            raise ImportError(f"the lmdb package exports no {symbols[i].name.decode()}; {REMEDY}")
    return 0


cdef Status mdb_status(int error) noexcept nogil:
    if error == 0:
        return OK
    if error == MDB_NOTFOUND:
        return NO_ENTRY
    if error == MDB_MAP_FULL:
        bk_add(&mdb_full_maps, 1)
    if error == ENOSPC or error == EDQUOT or error == MDB_MAP_FULL:
        return NO_SPACE
    if error == MDB_PAGE_NOTFOUND or error == MDB_CORRUPTED or error == MDB_INVALID or error == MDB_INCOMPATIBLE \
            or error == MDB_CURSOR_FULL or error == MDB_PAGE_FULL or error == MDB_PROBLEM:
        return CORRUPT           # LMDB found its file damaged
    return NO_MEMORY if error == ENOMEM else IO_ERROR


def version() -> tuple:
    """Return (major, minor, patch) of the LMDB in use."""
    cdef int major = 0, minor = 0, patch = 0
    mdb.version(&major, &minor, &patch)
    return major, minor, patch


resolve()
if version()[:2] != (0, 9):
    raise ImportError(f"the lmdb package holds LMDB {'.'.join(map(str, version()))}, not 0.9; {REMEDY}")
