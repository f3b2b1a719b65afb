"""Auto-recovery: it finds ledgers with too few replicas, and copies their entries to other bookies.

It is built on `bookie.client.ledgers`; `service`, and the modules that it uses to open ledgers, also on
`bookie.client.bookies`. Begin reading with `service`, then `auditor`, which marks ledgers, and `worker`, which copies
their entries.

contracts      the interfaces it needs besides `bookie.client.contracts`: the queue of marked ledgers, opening ledgers
stores         the queue of marked ledgers without blocking
settings       the settings, by Apache BookKeeper's keys
counters       the counters
fragments      which entries each bookie of a ledger must hold
checker        whether the bookies hold them
sources        read entries that are to be copied, and verify their digests
target         write entries to a bookie
throttle       a limit of bytes per second
pace           bookies with little free space let others go first
opening        open ledgers whose password nobody gave
copier         copy the fragments of a segment, then change the metadata
worker         takes marked ledgers and copies their fragments
targets        which bookies take copies, by their room
lost_bookies   which bookies count as lost, and since when
recovering     copy the entries of lost bookies, ledger by ledger
rewriting      write entries again that live bookies lack or hold damaged
restoring      both of these beside auto-recovery, under its locks
forcing        close a ledger although bookies that a recovery needs are gone for good
walking        visit every ledger of the cluster
audits         the checks of an auditor
full_check     find holes inside fragments by lists of entries, and fill them
auditor        the elected auditor, which runs the checks
decommission   move all ledgers away from a bookie, with progress
hosting        auto-recovery inside bookie-server
"""
