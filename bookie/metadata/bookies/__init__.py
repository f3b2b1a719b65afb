"""The bookies of a cluster: who each is, what it publishes, how it stays registered, and in which state it is.

`identity` chooses the id that ensembles name for as long as the data lives. `service_info` is what a bookie publishes
with its registration. `registration` keeps the registered state equal to the real one, whatever happens to the store.
`states` tells which bookies are writable, read-only or absent, from registrations and cookies.

Begin with `identity`, then `registration`.

Leans on: metadata.driver, bookie.errors, bookie.pb.
"""
