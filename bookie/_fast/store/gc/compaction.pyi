# No Python surface: module `store.gc.collector` is its door.
