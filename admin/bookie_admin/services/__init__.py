"""The gRPC services of the admin port, one module for each. `add_to` registers a service with a server; `close` ends
its streams.

A module implements the methods of one service in proto/bookie/pb. They run on the plane's threads, after
`bookie_admin.interceptor` has authorized the caller; it also turns exceptions into statuses.
"""
