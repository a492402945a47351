"""A table's schema as others write it: ``pyparq schema --as``."""
