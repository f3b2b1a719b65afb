"""A Pulsar broker on three of our bookies and on three of Apache BookKeeper's, in turn."""
