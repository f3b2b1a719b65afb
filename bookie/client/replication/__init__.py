"""Auto-recovery: ledgers that lack replicas are found, and given new ones.

Leans on `bookie.client.ledgers`; `service` and what opens ledgers for it also on `bookie.client.bookies`. Begin with
`service`, then `auditor`, which marks ledgers, and `worker`, which copies what they lack.

contracts      what it needs besides `bookie.client.contracts`: the queue of marked ledgers, and opening ledgers
settings       upstream's keys
counters       what it counts
fragments      what each bookie of a ledger has to hold
checker        whether it does
sources        reading what is to be copied, digests verified
target         writing it
throttle       so many bytes a second
pace           bookies with little room let the others go first
copier         a segment's fragments copied, then the metadata changed
worker         takes marked ledgers and copies what they lack
lost_bookies   who counts as lost, and since when
recovering     copying what lost bookies hold, ledger by ledger
rewriting      what live bookies lack, or have damaged, written to them again
restoring      both of these beside auto-recovery, under its locks
walking        every ledger of the cluster
audits         the checks of an auditor
auditor        the elected one runs them
decommission   a bookie's ledgers moved away, with progress
"""
