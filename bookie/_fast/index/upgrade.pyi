# No Python surface: the index does this when it is opened.
