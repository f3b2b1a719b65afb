"""Time and memory of metadata stores with many ledgers: listing, garbage collection, auditing, reads and creates.

`__main__` runs the steps in each store in turn, `steps` has the steps, one in a process of its own, and `loading` fills
the stores.
"""
