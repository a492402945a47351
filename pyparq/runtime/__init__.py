"""Services for the running program: threads, safe forks, lazy imports, text for terminals."""

DOOR = ("fork_safety", "lazy_import", "messages", "text", "threads")
"""Modules of this package that other packages may use."""
