/* Declarations of the LMDB 0.9 types and functions in use. lmdb_c.pyx looks the functions up at run time. */
#ifndef BOOKIE_LMDB_C_H
#define BOOKIE_LMDB_C_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct MDB_env MDB_env;
typedef struct MDB_txn MDB_txn;
typedef struct MDB_cursor MDB_cursor;
typedef unsigned int MDB_dbi;

typedef struct MDB_val {
    size_t mv_size;
    void *mv_data;
} MDB_val;

typedef struct MDB_stat {
    unsigned int ms_psize;
    unsigned int ms_depth;
    size_t ms_branch_pages;
    size_t ms_leaf_pages;
    size_t ms_overflow_pages;
    size_t ms_entries;
} MDB_stat;

typedef struct MDB_envinfo {
    void *me_mapaddr;
    size_t me_mapsize;
    size_t me_last_pgno;
    size_t me_last_txnid;
    unsigned int me_maxreaders;
    unsigned int me_numreaders;
} MDB_envinfo;

typedef struct Mdb {
    char *(*version)(int *major, int *minor, int *patch);
    char *(*strerror)(int error);
    int (*env_create)(MDB_env **env);
    int (*env_set_mapsize)(MDB_env *env, size_t size);
    int (*env_set_maxdbs)(MDB_env *env, MDB_dbi dbs);
    int (*env_set_maxreaders)(MDB_env *env, unsigned int readers);
    int (*env_open)(MDB_env *env, const char *path, unsigned int flags, mode_t mode);
    int (*env_info)(MDB_env *env, MDB_envinfo *info);
    int (*env_get_fd)(MDB_env *env, int *fd);
    void (*env_close)(MDB_env *env);
    int (*reader_check)(MDB_env *env, int *dead);
    int (*txn_begin)(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn);
    int (*txn_commit)(MDB_txn *txn);
    void (*txn_abort)(MDB_txn *txn);
    void (*txn_reset)(MDB_txn *txn);
    int (*txn_renew)(MDB_txn *txn);
    int (*dbi_open)(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi);
    int (*stat)(MDB_txn *txn, MDB_dbi dbi, MDB_stat *stat);
    int (*get)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
    int (*put)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned int flags);
    int (*del)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
    int (*cursor_open)(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor);
    void (*cursor_close)(MDB_cursor *cursor);
    int (*cursor_renew)(MDB_txn *txn, MDB_cursor *cursor);
    int (*cursor_get)(MDB_cursor *cursor, MDB_val *key, MDB_val *data, int operation);
    int (*cursor_put)(MDB_cursor *cursor, MDB_val *key, MDB_val *data, unsigned int flags);
    int (*cursor_del)(MDB_cursor *cursor, unsigned int flags);
} Mdb;
#endif
