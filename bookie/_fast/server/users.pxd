"""Who was let in at the data port: what it may ask, what is counted of it, and whether it still may come.

Python makes one User for each name and credential; connections that it let in refer to it, on whichever loop they are.
It lives while anybody refers to it. What a connection may ask is a mask of its own, so that a look at it costs nothing.
"""
from libc.stdint cimport int64_t, uint8_t

cdef enum Right:
    MAY_READ = 1
    MAY_WRITE = 2
    MAY_ADMIN = 4
    MAY_ALL = 7

cdef struct User:
    # atomic, all of them
    int64_t references
    int64_t connections      # open now
    int64_t logins           # since it was made
    int64_t refused          # requests for want of a right
    int64_t revoked          # 1: its connections are to end

cdef struct Login:
    # What a connection knows of who is at its other end.
    uint8_t state            # AuthState
    uint8_t may              # Rights that count now; none of them before the login
    uint8_t granted          # Rights once it is in
    User* user               # NULL: nobody in particular
    int64_t session          # of its authentication, as Python knows it; 0: none
    int64_t jobs             # that Python has not answered yet
    int64_t urgent           # requests under way that go before others, by who it is (module `server.admission`)

cdef User* user_hold(User* user) noexcept nogil
cdef void user_release(User* user) noexcept nogil        # NULL is nobody
# The connection is this user's from here on, who may do so much; takes over the caller's reference.
cdef void login_enter(Login* login, User* user, uint8_t may) noexcept nogil
# It is nobody's any more. Idempotent.
cdef void login_leave(Login* login) noexcept nogil

cdef class AuthenticatedUser:
    cdef User* user
