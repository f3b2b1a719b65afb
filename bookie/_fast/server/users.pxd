"""Authenticated users of the data port: their rights, what is counted for them, and whether they are revoked.

Python creates one User for each name and credential; the connections that logged in as it refer to it, on all loops.
It is freed with its last reference. A connection has a copy of its rights, so that checking them costs nothing.
"""
from libc.stdint cimport int64_t, uint8_t

cdef enum Right:
    MAY_READ = 1
    MAY_WRITE = 2
    MAY_ADMIN = 4
    MAY_ALL = 7

cdef struct User:
    # All atomic.
    int64_t references
    int64_t connections      # open now
    int64_t logins           # since it was created
    int64_t refused          # requests without the right to them
    int64_t revoked          # 1: its connections are to be closed

cdef struct Login:
    # What a connection knows of its user.
    uint8_t state            # AuthState
    uint8_t may              # Rights that are in effect; none before the login
    uint8_t granted          # Rights after the login
    User* user               # NULL for an unnamed user
    int64_t session          # number of its authentication, for Python; 0 for none
    int64_t jobs             # submitted to Python and not answered
    int64_t urgent           # urgent requests in progress (module `server.admission`)

cdef User* user_hold(User* user) noexcept nogil
cdef void user_release(User* user) noexcept nogil        # NULL is allowed
# Log the connection in as this user, with these rights; takes over the caller's reference.
cdef void login_enter(Login* login, User* user, uint8_t may) noexcept nogil
# Release the connection's user. A second call does nothing.
cdef void login_leave(Login* login) noexcept nogil

cdef class AuthenticatedUser:
    cdef User* user
