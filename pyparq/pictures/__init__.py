"""What people look at: the page that shows a file, and tables for notebooks. Nothing here reads a file."""

DOOR = ("map_page", "tables")
"""Modules of this package that other packages may use."""
