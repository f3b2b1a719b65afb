"""Placement policies, which choose the bookies of a ledger. They only compute: nothing here waits or reads a clock.

They are built on `bookie.client.contracts` and the settings, and run on one event loop. Begin reading with `factory`,
then `base`.

factory        the policy that a configuration names
base           what all policies know about the cluster
default        any bookies
placed         what the policies share that know network locations
rack           rack-aware placement, with rack_choice, racks and spread_search
region         region-aware placement
zone           zone-aware placement
coverage       over what the write quorums of an ensemble must be spread
adherence      what to replace in an ensemble that violates its policy
weights        from free bytes to weights, and their caps
load           from space and load to weights
pool           bookies to draw from, each with its weight
bulk           thousands of ensembles at once, for simulations
chances        each bookie's chance to be chosen, for operators
bookie_info    poll the disk space of bookies
locations      the network locations of bookies
resolver       look up network locations
newcomers      look up the locations of new bookies off the event loop
hosts          the hosts of bookies, as their registrations name them
read_order     in which order replicas are read
"""
