"""One command a file; `command` is the click command. Imports of weight stand inside the functions."""
