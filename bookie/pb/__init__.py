"""Code generated from proto/ by build_proto.py at every build. Only this line is kept; the rest is never edited."""
