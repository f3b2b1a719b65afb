"""The metadata store in etcd, in the layout of Apache BookKeeper's own driver for etcd.

`endpoints` sends requests to the members of an etcd cluster: TLS, logins, and another member when one does not answer.
`store` is the interface of versioned keys (`key_value.keys`) on them: keys by their revisions, sessions by leases, and
the watch. `numbered` lists keys with numbers, of which there may be millions. `driver` adds what Apache BookKeeper's
layout has of its own: the cluster's keys, ledgers, and their ids.

Begin with `store`, then `driver`.

Leans on: metadata.key_value, bookie.admin_port, bookie.pb, gRPC.
"""
