"""Services for the running program: threads, safe forks, lazy imports, text for terminals."""

DOOR = ("fork_safety", "messages", "lanes", "lazy_import", "messages", "text", "text", "threads", "messages")
"""Modules of this package that other packages may use."""
