"""The walk is a recursion as deep as the tree; each level keeps a copy of its page."""
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from bookie._fast.base.types cimport CORRUPT, NO_MEMORY, OK, Status
from bookie._fast.index.lmdb_pages cimport (
    NODE_BIG,
    NO_PAGE,
    TREE_DEPTH_MOST,
    Node,
    PageFile,
    Tree,
    big_pages,
    big_read,
    page_check,
    page_count,
    page_is_branch,
    page_node,
    page_read,
    page_within,
)


cdef uint8_t* seen_pages(const PageFile* file) noexcept nogil:
    return <uint8_t*> calloc(file.last // 8 + 1, 1)


cdef bint see_page(uint8_t* seen, const PageFile* file, uint64_t page) noexcept nogil:
    cdef uint8_t bit = <uint8_t> (1 << (page & 7))
    if page < 2 or page > file.last or seen[page >> 3] & bit:
        return False
    seen[page >> 3] |= bit
    return True


cdef Status tree_walk(TreeWalk* walk, const Tree* tree) noexcept nogil:
    cdef Status status
    if tree.root == <uint64_t> NO_PAGE:
        return OK
    if tree.depth == 0 or tree.depth > TREE_DEPTH_MOST:
        walk.lost(walk.context)
        return OK
    walk.by_number = tree.by_number
    walk.images = <uint8_t*> malloc(<size_t> tree.depth * walk.file.page_bytes)
    if walk.images == NULL:
        return NO_MEMORY
    status = visit(walk, tree.root, tree.depth, walk.images, NULL, NULL)
    free(walk.images)
    walk.images = NULL
    return status


cdef inline bint is_other(const TreeWalk* walk, uint64_t number, const uint8_t* page) noexcept nogil:
    """Return whether the image, which was read from the place of page `number`, is another page that is sound."""
    cdef uint64_t own
    memcpy(&own, page, sizeof(own))
    return own != number and page_check(page, walk.file.page_bytes, own, walk.file.last, walk.by_number) == OK


cdef Status visit(TreeWalk* walk, uint64_t number, uint32_t levels, uint8_t* page, const Node* low,
                  const Node* high) noexcept nogil:
    """Walk a page and the pages below it; its keys must be in [low, high)."""
    cdef Node node, following
    cdef const Node* left = low
    cdef const Node* right
    cdef uint32_t i, count
    cdef bint sound = walk.seen == NULL or see_page(walk.seen, &walk.file, number)
    cdef Status status = OK
    if not sound:
        walk.outdated = True
    else:
        walk.pages += 1
        status = page_read(&walk.file, number, walk.by_number, page)
        sound = status == OK and page_is_branch(page) == (levels > 1) and page_within(page, low, high, walk.by_number)
        if not sound and (status == OK or (status == CORRUPT and is_other(walk, number, page))):
            walk.outdated = True
        status = OK
    if not sound:
        walk.lost(walk.context)
        return OK
    count = page_count(page)
    for i in range(count):
        page_node(page, i, &node)
        if levels == 1:
            status = hand_out(walk, &node)
        else:
            if i:
                left = &node
            right = high
            if i + 1 < count:
                page_node(page, i + 1, &following)
                right = &following
            status = visit(walk, node.child, levels - 1, page + walk.file.page_bytes, left, right)
        if status != OK:
            break
    return status


cdef Status hand_out(TreeWalk* walk, const Node* node) noexcept nogil:
    cdef uint8_t* value
    cdef uint64_t page
    cdef Status status = OK
    if not node.flags & NODE_BIG:
        return walk.each(walk.context, node, node.value)
    for page in range(node.child, node.child + big_pages(&walk.file, node.value_size)):
        if walk.seen != NULL and not see_page(walk.seen, &walk.file, page):
            walk.outdated = True
            walk.lost(walk.context)
            return OK
        walk.pages += 1
    value = big_read(&walk.file, node, &status)
    if value != NULL:
        status = walk.each(walk.context, node, value)
        free(value)
    elif status != NO_MEMORY:
        walk.lost(walk.context)
        status = OK
    return status


cdef struct FreePages:
    uint8_t* seen
    const PageFile* file
    bint damaged


cdef void damage(void* context) noexcept nogil:
    (<FreePages*> context).damaged = True


cdef Status see_list(void* context, const Node* node, const uint8_t* value) noexcept nogil:
    """Mark the pages of one list: a count, then that many page numbers, descending."""
    cdef FreePages* pages = <FreePages*> context
    cdef uint64_t count, page, i
    cdef uint64_t before = <uint64_t> NO_PAGE
    if node.value_size < 8 or node.value_size & 7:
        pages.damaged = True
        return OK
    memcpy(&count, value, 8)
    if count > node.value_size // 8 - 1:
        pages.damaged = True
        return OK
    for i in range(count):
        memcpy(&page, value + 8 + 8 * i, 8)
        if page >= before or not see_page(pages.seen, pages.file, page):
            pages.damaged = True
        before = page
    return OK


cdef Status see_free_pages(uint8_t* seen, const PageFile* file, const Tree* tree) noexcept nogil:
    cdef TreeWalk walk
    cdef FreePages pages
    cdef Status status
    memset(&walk, 0, sizeof(TreeWalk))
    pages.seen, pages.file, pages.damaged = seen, file, False
    walk.file = file[0]
    walk.seen = seen
    walk.each = see_list
    walk.lost = damage
    walk.context = &pages
    status = tree_walk(&walk, tree)
    return CORRUPT if status == OK and pages.damaged else status
