"""Pages are read with pread from the file that LMDB maps: what it is about to use is what was checked just before."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset, strlen
from posix.unistd cimport pread

from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.types cimport CORRUPT, IO_ERROR, NO_MEMORY, OK
from bookie._fast.index.branch_sums cimport sums_hold
from bookie._fast.index.codec cimport RUN_KEY_BYTES, fence_unpack
from bookie._fast.index.commit_value cimport COMMIT_KEY, COMMIT_KEY_BYTES, commit_share, commit_unpack
from bookie._fast.index.lmdb_pages cimport (
    META_BYTES,
    NODE_BIG,
    NO_PAGE,
    PAGE_HEAD_BYTES,
    TABLE_BYTES,
    TREE_DEPTH_MOST,
    Node,
    Tree,
    big_check,
    key_order,
    meta_newest,
    page_count,
    page_is_branch,
    page_node,
    page_read,
    page_within,
    table_parse,
    tree_at,
)
from bookie._fast.index.lmdb_tree cimport TreeWalk, see_free_pages, seen_pages, tree_walk

cdef extern from *:
    int __builtin_popcount(unsigned int) noexcept nogil

cdef const char** TABLE_NAMES = [b"locations", b"ledgers", b"fences", b"doubts"]

cdef enum:
    ALL_NAMED = (1 << TABLES) - 1
    FIRST_NAMED = 1 << TABLE_LOCATIONS | 1 << TABLE_LEDGERS

cdef struct Learning:
    Guard* guard
    uint32_t crc
    bint tables                  # walking the main tree, whose values are the roots of tables
    bint fences                  # walking the fences, whose values are checked only when the index is opened
    bint damaged
    uint64_t values
    uint64_t sum_                # of them


cdef void guard_init(Guard* guard) noexcept nogil:
    memset(guard, 0, sizeof(Guard))
    guard.file.fd = -1


cdef void guard_free(Guard* guard) noexcept nogil:
    free(guard.sound)
    free(guard.edges)
    free(guard.images)
    guard_init(guard)


cdef Status heads(int fd, uint32_t page_bytes, uint32_t* crc) noexcept nogil:
    """Compute the checksum of both meta pages."""
    cdef uint8_t[PAGE_HEAD_BYTES + META_BYTES] raw
    cdef int i
    crc[0] = 0
    for i in range(2):
        if pread(fd, raw, sizeof(raw), i * <uint64_t> page_bytes) != sizeof(raw):
            return IO_ERROR
        crc[0] = crc32c(crc[0], raw, sizeof(raw))
    return OK


cdef Status sum_up(void* context, const Node* node, const uint8_t* value) noexcept nogil:
    cdef Learning* learning = <Learning*> context
    cdef uint64_t freed
    cdef int table
    learning.crc = crc32c(learning.crc, node.key, node.key_size)
    learning.crc = crc32c(learning.crc, value, node.value_size)
    learning.values += 1
    if not learning.tables:
        # The free list: each key is the number of the commit that no longer needed these pages.
        memcpy(&freed, node.key, sizeof(freed))
        learning.damaged |= not 0 < freed <= learning.guard.meta.transaction
        return OK
    if node.key_size == COMMIT_KEY_BYTES and memcmp(node.key, COMMIT_KEY, COMMIT_KEY_BYTES) == 0:
        if node.flags or commit_unpack(value, node.value_size, &learning.guard.commit) != OK:
            learning.damaged = True
        else:
            learning.guard.numbered = True
        return OK
    for table in range(TABLES):
        if node.key_size == strlen(TABLE_NAMES[table]) and memcmp(node.key, TABLE_NAMES[table], node.key_size) == 0:
            learning.guard.named |= 1 << table
            if table_parse(node, &learning.guard.tables[table]) != OK:
                learning.damaged = True
            return OK
    learning.damaged = True      # no table has this name: the page is another one, or a name has changed
    return OK


cdef void lost(void* context) noexcept nogil:
    (<Learning*> context).damaged = True


cdef bint as_described(Learning* learning, TreeWalk* walk, const Tree* tree) noexcept nogil:
    """Return whether a walk met as many values and pages as the meta page says, and begin to count anew."""
    cdef bint same = learning.values == tree.entries and walk.pages == tree.pages
    learning.values = walk.pages = 0
    return same


cdef Status sum_trees(Guard* guard, uint32_t* crc) noexcept nogil:
    """Compute the checksum of the main tree and the free list; the walk checks their pages."""
    cdef TreeWalk walk
    cdef Learning learning
    cdef uint32_t wanted
    cdef Status status
    memset(&walk, 0, sizeof(TreeWalk))
    walk.file = guard.file
    walk.each, walk.lost, walk.context = sum_up, lost, &learning
    walk.seen = seen_pages(&guard.file)
    if walk.seen == NULL:
        return NO_MEMORY
    memset(&learning, 0, sizeof(Learning))
    learning.guard, learning.tables = guard, True
    guard.named, guard.numbered, guard.commit.summed, guard.commit.begun_ns = 0, False, False, 0
    status = tree_walk(&walk, &guard.meta.main)
    # A page whose write was lost may hold an older state of itself, which is sound.
    guard.stale = guard.numbered and guard.commit.number != guard.meta.transaction
    # An index without a number may be of a version that had no fences and doubts.
    wanted = ALL_NAMED if guard.numbered else FIRST_NAMED if guard.meta.main.entries else 0
    learning.damaged |= wanted & ~guard.named != 0 or not as_described(&learning, &walk, &guard.meta.main)
    guard.roots_known = status == OK and not learning.damaged
    learning.tables = False
    if status == OK:
        status = tree_walk(&walk, &guard.meta.free)
        learning.damaged |= not as_described(&learning, &walk, &guard.meta.free)
    free(walk.seen)
    crc[0] = learning.crc
    return CORRUPT if status == OK and (learning.damaged or guard.stale) else status


cdef Status guard_learn(Guard* guard, int fd) noexcept nogil:
    cdef int table
    cdef uint8_t* seen
    cdef Status status
    guard.roots_known = guard.stale = False
    status = meta_newest(fd, &guard.meta)
    guard.found = status == OK
    if status != OK:
        return status
    guard.file.fd = fd
    guard.file.page_bytes = guard.meta.page_bytes
    guard.file.last = guard.meta.last
    memset(guard.tables, 0, sizeof(guard.tables))
    for table in range(TABLES):
        guard.tables[table].root = <uint64_t> NO_PAGE
    status = heads(fd, guard.meta.page_bytes, &guard.metas_crc)
    if status == OK:
        status = sum_trees(guard, &guard.trees_crc)
    if status != OK:
        return status
    seen = unused_by_tables(guard, &status)
    free(seen)
    return status


cdef Status see_value(void* context, const Node* node, const uint8_t* value) noexcept nogil:
    return OK


cdef uint8_t* unused_by_tables(const Guard* guard, Status* status) noexcept nogil:
    """Return a bit for each page that is free or belongs to main tree or free list; NULL if there is no memory."""
    cdef TreeWalk walk
    cdef Learning learning
    memset(&walk, 0, sizeof(TreeWalk))
    learning.damaged = False
    walk.file = guard.file
    walk.each, walk.lost, walk.context = see_value, lost, &learning
    walk.seen = seen_pages(&guard.file)
    status[0] = NO_MEMORY if walk.seen == NULL else tree_walk(&walk, &guard.meta.main)
    if status[0] == OK:
        status[0] = CORRUPT if learning.damaged else see_free_pages(walk.seen, &guard.file, &guard.meta.free)
    return walk.seen


cdef Status guard_sum(const Guard* guard) noexcept nogil:
    cdef Status status
    cdef uint8_t* seen = unused_by_tables(guard, &status)
    cdef uint64_t pages = 2      # the meta pages
    cdef uint64_t i
    cdef uint32_t table
    for i in range(guard.file.last // 8 + 1 if status == OK else 0):
        pages += <uint64_t> __builtin_popcount(seen[i])
    free(seen)
    for table in range(TABLES):
        pages += guard.tables[table].pages
    return CORRUPT if status == OK and pages != guard.file.last + 1 else status


cdef uint32_t bits_apart(const uint8_t* a, const char* b, uint32_t size) noexcept nogil:
    cdef uint32_t i
    cdef uint32_t bits = 0
    for i in range(size):
        bits += <uint32_t> __builtin_popcount(a[i] ^ <uint8_t> b[i])
    return bits


cdef bint guard_guess(Guard* guard) noexcept nogil:
    cdef uint32_t size = guard.file.page_bytes
    cdef uint32_t table, length, at
    cdef uint8_t* page
    if guard.file.fd < 0 or guard.meta.main.root == <uint64_t> NO_PAGE:
        return False
    page = <uint8_t*> malloc(size)
    guard.named = 0
    if page != NULL and pread(guard.file.fd, page, size, guard.meta.main.root * size) == size:
        for table in range(TABLES):
            length = <uint32_t> strlen(TABLE_NAMES[table])
            # Nodes lie at the end of a page; what is left of old ones is before them.
            at = (size - TABLE_BYTES - length) & ~<uint32_t> 1
            while at > PAGE_HEAD_BYTES and bits_apart(page + at, TABLE_NAMES[table], length) > 1:
                at -= 2
            if at <= PAGE_HEAD_BYTES:
                guard.tables[table].root = <uint64_t> NO_PAGE
                continue
            tree_at(page + at + length, False, &guard.tables[table])
            guard.named |= 1 << table
    free(page)
    return guard.named & FIRST_NAMED == FIRST_NAMED


cdef bint grow(uint8_t** bits, uint64_t size) noexcept nogil:
    cdef uint8_t* grown = <uint8_t*> realloc(bits[0], size)
    if grown != NULL:
        bits[0] = grown
    return grown != NULL


cdef Status guard_begin(Guard* guard) noexcept nogil:
    cdef uint32_t crc
    cdef uint64_t size = guard.file.last // 8 + 1
    cdef Status status = heads(guard.file.fd, guard.file.page_bytes, &crc)
    if status == OK and crc != guard.metas_crc:
        return CORRUPT
    if status == OK:
        status = sum_trees(guard, &crc)
    if status != OK:
        return CORRUPT if status == IO_ERROR else status
    if crc != guard.trees_crc:
        return CORRUPT
    if size > guard.sound_bytes:
        guard.sound_bytes = 0
        if not grow(&guard.sound, size + size // 4) or not grow(&guard.edges, size + size // 4):
            return NO_MEMORY
        guard.sound_bytes = size + size // 4
    memset(guard.sound, 0, guard.sound_bytes)
    memset(guard.edges, 0, guard.sound_bytes)
    memset(guard.pictured, 0, sizeof(guard.pictured))
    guard.leaf_known = False
    if guard.images == NULL:
        guard.images = <uint8_t*> malloc(<size_t> TREE_DEPTH_MOST * guard.file.page_bytes)
    return OK if guard.images != NULL else NO_MEMORY


cdef Status look_at(void* context, const Node* node, const uint8_t* value) noexcept nogil:
    cdef Learning* learning = <Learning*> context
    cdef int64_t ledger, deleted_ms
    learning.values += 1
    learning.sum_ += commit_share(value, node.value_size)
    if learning.fences and fence_unpack(node.key, node.key_size, value, node.value_size, &ledger, &deleted_ms) != OK:
        learning.damaged = True
    return OK


cdef bint guard_is_older(const Guard* guard, uint32_t table, uint64_t sum_) noexcept nogil:
    return guard.commit.summed and table != TABLE_LOCATIONS and guard.commit.sums[table - TABLE_LEDGERS] != sum_


cdef Status guard_whole(const Guard* guard, uint32_t table, uint64_t* sum_) noexcept nogil:
    cdef TreeWalk walk
    cdef Learning learning
    cdef Status status
    memset(&walk, 0, sizeof(TreeWalk))
    walk.file = guard.file
    walk.each, walk.lost, walk.context = look_at, lost, &learning
    learning.fences = table == TABLE_FENCES
    walk.seen = seen_pages(&guard.file)
    if walk.seen == NULL:
        return NO_MEMORY
    learning.damaged = False
    learning.values = learning.sum_ = 0
    # A page of an earlier commit looks sound, but is free; a node lost from a page shows only in the number of values.
    status = see_free_pages(walk.seen, &guard.file, &guard.meta.free)
    if status == OK:
        status = tree_walk(&walk, &guard.tables[table])
    free(walk.seen)
    sum_[0] = learning.sum_
    if status == OK and (learning.damaged or learning.values != guard.tables[table].entries
                         or guard_is_older(guard, table, learning.sum_)):
        return CORRUPT
    return status


cdef Status guard_range(Guard* guard, uint32_t table, const uint8_t* low, const uint8_t* high,
                        uint32_t key_size) noexcept nogil:
    cdef Tree* tree = &guard.tables[table]
    cdef Status status
    guard.summed = table == TABLE_LOCATIONS and guard.sums != NULL
    if tree.root == <uint64_t> NO_PAGE:
        return OK
    if tree.depth == 0 or tree.depth > TREE_DEPTH_MOST:
        return CORRUPT
    if table == TABLE_LOCATIONS:
        if in_leaf(guard, low, high):
            return OK
        guard.leaf_known = False
    status = visit(guard, tree.root, tree.depth, guard.images, low, high, key_size, NULL, NULL)
    if status != OK:
        guard.leaf_known = False
    return CORRUPT if status == IO_ERROR else status


cdef inline bint in_leaf(const Guard* guard, const uint8_t* low, const uint8_t* high) noexcept nogil:
    """Return whether runs with these keys belong to the leaf that was checked last."""
    return (guard.leaf_known and memcmp(low, guard.leaf_first, RUN_KEY_BYTES) >= 0
            and memcmp(high, guard.leaf_end, RUN_KEY_BYTES) < 0)


cdef void note_leaf(Guard* guard, const Node* first, const Node* end) noexcept nogil:
    """Remember that the leaf with keys in [first, end) was checked. NULL: there is no other leaf on that side."""
    memset(guard.leaf_first, 0, RUN_KEY_BYTES)
    memset(guard.leaf_end, 0xff, RUN_KEY_BYTES)
    guard.leaf_known = ((first == NULL or first.key_size == RUN_KEY_BYTES)
                        and (end == NULL or end.key_size == RUN_KEY_BYTES))
    if guard.leaf_known and first != NULL:
        memcpy(guard.leaf_first, first.key, RUN_KEY_BYTES)
    if guard.leaf_known and end != NULL:
        memcpy(guard.leaf_end, end.key, RUN_KEY_BYTES)


cdef Status committed(const Guard* guard, uint64_t number, uint8_t* page) noexcept nogil:
    """Read a branch page, which must be the same as when its checksum was taken."""
    cdef uint32_t size = guard.file.page_bytes
    if pread(guard.file.fd, page, size, number * size) != size:
        return IO_ERROR
    return OK if sums_hold(guard.sums, number, page, size) else CORRUPT


cdef Status look(Guard* guard, uint64_t number, uint32_t levels, uint8_t* page, const Node* first,
                 const Node* end) noexcept nogil:
    """Read a page whose keys are in [first, end), and check it the first time."""
    cdef uint8_t bit = <uint8_t> (1 << (number & 7))
    cdef uint64_t* pictured = &guard.pictured[(page - guard.images) // guard.file.page_bytes]
    cdef Node node
    cdef uint32_t i
    cdef Status status
    if number > guard.file.last:
        return CORRUPT
    if pictured[0] == number:
        return OK
    pictured[0] = 0
    if levels > 1 and guard.summed:
        # A child pointer to an old page looks sound, and LMDB would copy the branch that holds it: compare with its
        # checksum.
        status = committed(guard, number, page)
    else:
        status = page_read(&guard.file, number, False, page)
        if status == OK and (page_is_branch(page) != (levels > 1) or not page_within(page, first, end, False)):
            status = CORRUPT
    if status != OK:
        return status
    for i in range(page_count(page) if levels == 1 else 0):
        page_node(page, i, &node)
        if node.flags & NODE_BIG:
            status = big_check(&guard.file, &node)
            if status != OK:
                return status
    guard.sound[number >> 3] |= bit
    pictured[0] = number
    return OK


cdef uint32_t child_of(const uint8_t* page, const uint8_t* key, uint32_t key_size) noexcept nogil:
    """Return the index of the child of a branch that `key` belongs to."""
    cdef uint32_t low = 1, high = page_count(page), middle
    cdef Node node
    while low < high:
        middle = (low + high) // 2
        page_node(page, middle, &node)
        if key_order(node.key, node.key_size, key, key_size, False) <= 0:
            low = middle + 1
        else:
            high = middle
    return low - 1


cdef Status visit(Guard* guard, uint64_t number, uint32_t levels, uint8_t* page, const uint8_t* low,
                  const uint8_t* high, uint32_t key_size, const Node* first, const Node* end) noexcept nogil:
    """Check the pages that hold [low, high] and their neighbours; with `low` NULL the first and last pages only."""
    cdef Node node, following
    cdef const Node* left = first
    cdef const Node* right
    cdef const uint8_t* within
    cdef uint32_t i, begin, stop, count
    cdef uint8_t bit = <uint8_t> (1 << (number & 7))
    cdef Status status
    # What was checked is not read again: of many ledgers, each has neighbours below other branches than the one before.
    if number <= guard.file.last and (guard.sound if levels == 1 else guard.edges)[number >> 3] & bit \
            and (levels == 1 or low == NULL):
        return OK
    status = look(guard, number, levels, page, first, end)
    if status != OK or levels == 1:
        return status
    count = page_count(page)
    begin = child_of(page, low, key_size) if low != NULL else 0
    stop = child_of(page, high, key_size) if low != NULL else count - 1
    i = begin - 1 if begin and low != NULL else begin
    while status == OK and i < count and i <= stop + 1:
        within = low
        if i < begin or i > stop:
            within = NULL
        page_node(page, i, &node)
        if i:
            left = &node
        right = end
        if i + 1 < count:
            page_node(page, i + 1, &following)
            right = &following
        status = visit(guard, node.child, levels - 1, page + guard.file.page_bytes, within, high, key_size, left,
                       right)
        if levels == 2 and within != NULL and begin == stop and key_size == RUN_KEY_BYTES:
            note_leaf(guard, left, right)
        i = count - 1 if low == NULL and i == 0 else i + 1
    if status == OK and low == NULL:
        guard.edges[number >> 3] |= bit
    return status
