"""The way down a tree to the greatest key that is not above the wanted one, whose value then names the next run."""
import errno

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdio cimport SEEK_END
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset, strlen
from posix.unistd cimport lseek

from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.cursor cimport load_i64, store_i64
from bookie._fast.base.file cimport FileOps, Files, read_full
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.planted cimport PLANT_STALE_LEAF, bk_planted
from bookie._fast.base.types cimport CORRUPT, END, IO_ERROR, NO_ENTRY, NO_MEMORY, OK, Status
from bookie._fast.index.branch_sums cimport BranchSum, BranchSums, sums_find, sums_free, sums_of
from bookie._fast.index.codec cimport RUN_KEY_BYTES, StoredRun, key_of, run_unpack
from bookie._fast.index.key cimport RunKey, key_before, key_end, key_equal
from bookie._fast.index.lmdb_pages cimport (
    NO_PAGE,
    PAGE_HEAD_BYTES,
    TREE_DEPTH_MOST,
    Meta,
    Node,
    Tree,
    meta_newest,
    page_count,
    page_node,
    table_parse,
)
from bookie._fast.index.lmdb_tree cimport TreeWalk, see_free_pages, seen_pages, tree_walk

cdef const char* TABLE = b"locations"

cdef enum:
    FLAG_LEAF = 2
    NODE_HEAD_BYTES = 8


cdef bint search_prepare(RunSearch* search) noexcept nogil:
    """Allocate buffers for the pages of `search.file`."""
    if search.page_bytes == search.file.page_bytes:
        return True
    search_free(search)
    search.leaf = <uint8_t*> malloc(search.file.page_bytes)
    search.page = <uint8_t*> malloc(search.file.page_bytes)
    if search.leaf == NULL or search.page == NULL:
        search_free(search)
        return False
    search.page_bytes = search.file.page_bytes
    return True


cdef void search_free(RunSearch* search) noexcept nogil:
    free(search.leaf)
    free(search.page)
    search.leaf = search.page = NULL
    search.page_bytes = 0
    search.leaf_number = 0


# --- pages ---

cdef Status read_page(RunSearch* search, uint64_t number, uint8_t* page) noexcept nogil:
    if number < 2 or number > search.file.last:
        return CORRUPT
    return OK if read_full(search.ops, search.file.fd, page, search.page_bytes, number * search.page_bytes) == 0 \
        else IO_ERROR


cdef Status read_branch(RunSearch* search, uint64_t number) noexcept nogil:
    """Read a branch page. Its checksum vouches for its contents, which were checked when the checksum was taken."""
    cdef const BranchSum* known = sums_find(search.sums, number)
    cdef Status status
    if known == NULL:
        return CORRUPT
    search.branch = known.image
    if known.image != NULL and not search.from_disk:
        return OK
    search.branch = search.page
    status = read_page(search, number, search.page)
    return status if status != OK else OK if crc32c(0, search.page, search.page_bytes) == known.sum else CORRUPT


cdef inline uint16_t u16(const uint8_t* at) noexcept nogil:
    cdef uint16_t v
    memcpy(&v, at, 2)
    return v


cdef Status read_leaf(RunSearch* search, uint64_t number) noexcept nogil:
    """Read a leaf, checked as far as `leaf_node` needs. The last one is reused: LMDB changes no page of a commit."""
    cdef uint64_t stored
    cdef uint32_t lower, upper
    cdef Status status
    if (number == search.leaf_number and search.commit and not search.from_disk
            and (search.commit == search.leaf_commit or bk_planted(PLANT_STALE_LEAF))):
        return OK
    search.leaf_number = 0
    status = read_page(search, number, search.leaf)
    if status != OK:
        return status
    memcpy(&stored, search.leaf, 8)
    lower = u16(search.leaf + 12)
    upper = u16(search.leaf + 14)
    if stored != number or u16(search.leaf + 10) != FLAG_LEAF or not PAGE_HEAD_BYTES < lower <= upper:
        return CORRUPT
    if upper > search.page_bytes or lower & 1:
        return CORRUPT
    search.leaf_number = number
    search.leaf_commit = search.commit
    return OK


cdef bint leaf_node(const RunSearch* search, uint32_t index, Node* node) noexcept nogil:
    """Get node `index` < page_count of the leaf. Return False if it does not lie in the part of the page for nodes."""
    cdef const uint8_t* leaf = search.leaf
    cdef uint32_t at = u16(leaf + PAGE_HEAD_BYTES + 2 * index)
    cdef uint32_t left
    if at < u16(leaf + 14) or at > search.page_bytes - NODE_HEAD_BYTES:
        return False
    left = search.page_bytes - at - NODE_HEAD_BYTES
    node.flags = u16(leaf + at + 4)
    node.key_size = u16(leaf + at + 6)
    node.value_size = u16(leaf + at) | <uint32_t> u16(leaf + at + 2) << 16
    if node.flags or node.key_size > left or node.value_size > left - node.key_size:
        return False
    node.key = leaf + at + NODE_HEAD_BYTES
    node.value = node.key + node.key_size
    return True


cdef inline bint above(const uint8_t* at, uint32_t size, RunKey wanted) noexcept nogil:
    """Return whether a key sorts after the wanted one."""
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef int order
    if size == RUN_KEY_BYTES:                   # true for all but the head's
        return key_before(wanted, RunKey(load_i64(at), load_i64(at + 8)))
    store_i64(key, wanted.ledger)
    store_i64(key + 8, wanted.first)
    order = memcmp(at, key, min(size, <uint32_t> RUN_KEY_BYTES))
    return order > 0 if order else size > RUN_KEY_BYTES


cdef uint32_t child_of(const RunSearch* search, RunKey wanted) noexcept nogil:
    """Return the child of the branch that holds `wanted`; the first child holds everything below the others."""
    cdef uint32_t low = 1, high = page_count(search.branch), middle
    cdef const uint8_t* node
    while low < high:
        middle = (low + high) // 2
        node = search.branch + u16(search.branch + PAGE_HEAD_BYTES + 2 * middle)
        if above(node + NODE_HEAD_BYTES, u16(node + 6), wanted):
            high = middle
        else:
            low = middle + 1
    return low - 1


cdef Status descend(RunSearch* search, uint64_t number, uint32_t levels, RunKey wanted, uint64_t* beside,
                    uint32_t* beside_levels) noexcept nogil:
    """Go down to the leaf of `wanted`; *beside gets the nearest page to the left of the path, if any."""
    cdef uint32_t child
    cdef Node node
    cdef Status status
    while levels > 1:
        status = read_branch(search, number)
        if status != OK:
            return status
        child = child_of(search, wanted)
        levels -= 1
        if child:
            page_node(search.branch, child - 1, &node)
            beside[0] = node.child
            beside_levels[0] = levels
        page_node(search.branch, child, &node)
        number = node.child
    return read_leaf(search, number)


cdef Status last_of_leaf(RunSearch* search, RunKey wanted, bint* found) noexcept nogil:
    """Set `at` to the last node that does not sort after `wanted`."""
    cdef uint32_t low = 0, high = page_count(search.leaf), middle
    cdef Node node
    while low < high:
        middle = (low + high) // 2
        if not leaf_node(search, middle, &node):
            return CORRUPT
        if above(node.key, node.key_size, wanted):
            high = middle
        else:
            low = middle + 1
    found[0] = low > 0
    search.at = low - 1
    return OK


# --- runs ---

cdef Status unpack(const RunSearch* search, StoredRun* run) noexcept nogil:
    cdef Node node
    if not leaf_node(search, search.at, &node):
        return CORRUPT
    return run_unpack(node.key, node.key_size, node.value, node.value_size, run)


cdef Status find(RunSearch* search, RunKey wanted, StoredRun* run) noexcept nogil:
    """Find the greatest run at or below `wanted`, or the head: that its next run sorts after `wanted` is the proof."""
    cdef uint64_t beside = <uint64_t> NO_PAGE
    cdef uint32_t levels = search.tree.depth
    cdef bint found = False
    cdef Status status
    if search.tree.root == <uint64_t> NO_PAGE or levels == 0 or levels > TREE_DEPTH_MOST:
        return CORRUPT                          # the head always exists
    status = descend(search, search.tree.root, levels, wanted, &beside, &levels)
    if status == OK:
        status = last_of_leaf(search, wanted, &found)
    if status == OK and not found:
        # The first run of the leaf was deleted, and the greatest run below `wanted` is in the leaf to the left.
        if beside == <uint64_t> NO_PAGE:
            return CORRUPT
        status = descend(search, beside, levels, key_end(), &beside, &levels)
        if status == OK:
            status = last_of_leaf(search, key_end(), &found)
    if status == OK:
        status = unpack(search, run) if found else CORRUPT
    if status != OK:
        return status
    if run.count and key_before(wanted, key_of(run)):
        return CORRUPT
    return OK if key_before(wanted, run.next) else CORRUPT


cdef Status find_at(RunSearch* search, RunKey key, StoredRun* run) noexcept nogil:
    """Find the run that another run names as its next."""
    cdef Status status = find(search, key, run)
    if status == OK and not (run.count and key_equal(key_of(run), key)):
        return CORRUPT
    return status


cdef Status search_spanning(RunSearch* search, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil:
    cdef Status status
    if entry < 0:
        return NO_ENTRY                         # no run holds such an id
    status = find(search, RunKey(ledger, entry), run)
    if status != OK or (run.count and run.ledger == ledger and run.first + run.count > entry):
        return status
    return NO_ENTRY


cdef Status search_next(RunSearch* search, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil:
    cdef Status status = search_spanning(search, ledger, max(entry, <int64_t> 0), run)
    if status == NO_ENTRY and run.next.ledger == ledger and not key_equal(run.next, key_end()):
        return find_at(search, run.next, run)
    return status


cdef Status search_last(RunSearch* search, int64_t ledger, StoredRun* run) noexcept nogil:
    cdef Status status = find(search, RunKey(ledger, INT64_MAX), run)       # no entry has this id
    if status != OK:
        return status
    return OK if run.count and run.ledger == ledger else NO_ENTRY


cdef Status search_from(RunSearch* search, RunKey key, StoredRun* run) noexcept nogil:
    cdef Status status = find(search, key, run)
    if status != OK or (run.count and key_equal(key_of(run), key)):
        return status
    return search_following(search, run)


cdef Status search_following(RunSearch* search, StoredRun* run) noexcept nogil:
    """Return the next run, which is mostly the next node of the same leaf."""
    cdef RunKey next = run.next
    if key_equal(next, key_end()):
        return END
    if search.at + 1 < page_count(search.leaf):
        search.at += 1
        if unpack(search, run) != OK or not run.count or not key_equal(key_of(run), next):
            return CORRUPT
        return OK
    return find_at(search, next, run)


# --- for tests and tools ---

cdef struct Found:
    Tree tree
    bint known
    bint damaged


cdef Status find_table(void* context, const Node* node, const uint8_t* value) noexcept nogil:
    cdef Found* found = <Found*> context
    if node.key_size == strlen(TABLE) and memcmp(node.key, TABLE, node.key_size) == 0:
        found.known = table_parse(node, &found.tree) == OK
    return OK


cdef void note_damage(void* context) noexcept nogil:
    (<Found*> context).damaged = True


cdef Status learn(FileOps* ops, int fd, uint32_t kept, RunSearch* search) noexcept nogil:
    """Read the newest commit in the file; none of its branch pages may be free."""
    cdef TreeWalk walk
    cdef Found found
    cdef Meta meta
    cdef uint8_t* seen
    cdef Status status = meta_newest(fd, &meta)
    if status != OK:
        return status
    # Free pages at the end may never have been written, but no file consists mostly of such pages.
    if meta.last // 8 > lseek(fd, 0, SEEK_END):
        return CORRUPT
    memset(&walk, 0, sizeof(TreeWalk))
    memset(&found, 0, sizeof(Found))
    walk.file.fd, walk.file.page_bytes, walk.file.last = fd, meta.page_bytes, meta.last
    walk.each, walk.lost, walk.context = find_table, note_damage, &found
    status = tree_walk(&walk, &meta.main)
    if status == OK and (found.damaged or not found.known):
        status = CORRUPT
    if status != OK:
        return status
    search.ops, search.file, search.tree = ops, walk.file, found.tree
    seen = seen_pages(&walk.file)
    if seen == NULL:
        return NO_MEMORY
    status = see_free_pages(seen, &walk.file, &meta.free)
    if status == OK:
        search.sums = sums_of(ops, &walk.file, &found.tree, NULL, seen, kept, &status)
    free(seen)
    return status


@cython.no_gc_clear
cdef class RunFile:
    """The runs of an index as of its newest commit when this is created. The file must not be written from then on."""
    cdef RunSearch search
    cdef Files files

    def __cinit__(self):
        memset(&self.search, 0, sizeof(RunSearch))
        self.search.file.fd = -1

    def __init__(self, path, Files files=None, uint32_t kept=0):
        """Open the data file `path`. OSError if it cannot be read, ValueError if the way to its runs is damaged.

        About `kept` branch pages stay in memory, and beyond these the ones above other branches; 0 keeps none.
        """
        self.files = files if files is not None else Files()
        cdef int fd = open_to_read(self.files.ops, path)
        self.search.file.fd = fd
        self.check(learn(self.files.ops, fd, kept, &self.search))
        if not search_prepare(&self.search):
            raise MemoryError

    def __dealloc__(self):
        self.close()

    def close(self):
        """Close the file. A second call does nothing."""
        search_free(&self.search)
        sums_free(<BranchSums*> self.search.sums)
        self.search.sums = NULL
        if self.search.file.fd >= 0:
            self.files.ops.close(self.search.file.fd)
            self.search.file.fd = -1

    def branches(self):
        """Return the number of branch pages, and how many of them are in memory."""
        cdef const BranchSums* sums = self.opened().sums
        return sums.count, sums.images

    cdef int check(self, Status status) except -1:
        if status == IO_ERROR:
            raise OSError(errno.EIO, "a page of the index cannot be read; check the disk and repair the index")
        if status == NO_MEMORY:
            raise MemoryError
        if status != OK:
            raise ValueError("a page of the index is damaged; repair the index")
        return 0

    cdef RunSearch* opened(self) except NULL:
        if self.search.file.fd < 0:
            raise ValueError("this file is closed")
        return &self.search

    cdef object answer(self, Status status, const StoredRun* run):
        if status == NO_ENTRY or status == END:
            return None
        self.check(status)
        return run.ledger, run.first, run.count, run.log_id, run.offset

    def spanning(self, int64_t ledger, int64_t entry):
        """Return (ledger, first, slots, log id, offset) of the run that spans `entry`, perhaps as a gap, or None."""
        cdef StoredRun run
        return self.answer(search_spanning(self.opened(), ledger, entry, &run), &run)

    def next(self, int64_t ledger, int64_t entry):
        """Return the same, or else the first run of the ledger after `entry`, or None."""
        cdef StoredRun run
        return self.answer(search_next(self.opened(), ledger, entry, &run), &run)

    def last(self, int64_t ledger):
        """Return the last run of a ledger, or None."""
        cdef StoredRun run
        return self.answer(search_last(self.opened(), ledger, &run), &run)

    def walk(self):
        """Return all runs."""
        cdef StoredRun run
        cdef list found = []
        cdef object one = self.answer(search_from(self.opened(), RunKey(0, 0), &run), &run)
        while one is not None:
            found.append(one)
            one = self.answer(search_following(&self.search, &run), &run)
        return found
