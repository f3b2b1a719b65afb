"""The bookies of a cluster: their ids, what they publish, how they stay registered, and in which state they are.

`identity` chooses the id that ensembles contain for as long as the data exist. `reachable` doubts
that clients find the address that it announces. `service_info` is what a bookie
publishes with its registration. `registration` keeps the registered mode equal to the real one, whatever happens to
the store. `states` tells which bookies are writable, read-only or absent, according to registrations and cookies.

Begin with `identity`, then `registration`.

Leans on: metadata.driver, bookie.errors, bookie.pb.
"""
