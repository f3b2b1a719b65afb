"""Which bookies a ledger goes to. Plain computation on one event loop: nothing here waits, or reads a clock by itself.

Leans on `bookie.client.contracts` and the settings. Begin with `factory`, then `base`.

weights   free bytes into shares: what a bookie's chance is, and where it is capped
pool      bookies to draw from, each with its share
base      what every policy knows of the cluster
default   any bookies
bulk      ensembles by the thousand, chosen as a policy chooses one: for simulations
factory   the policy that a configuration asks for
"""
