"""Services for the running program: threads, safe forks, lazy imports, text for terminals, tables for notebooks."""

DOOR = ("fork_safety", "lazy_import", "messages", "tables", "text", "threads")
"""Modules of this package that other packages may use."""
