"""What becomes of a cluster under a placement policy: bookies fill over months, in seconds. No Spark in here.

scenario   what is asked: the cluster, the load, the policy; a seed makes it one run
world      the run: ledgers placed by the client's own policy, bytes counted, what is full made read-only
"""
