# No Python surface: room `collector` is its door.
