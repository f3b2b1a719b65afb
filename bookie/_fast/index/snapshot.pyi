# No Python surface: the index publishes what its readers take.
