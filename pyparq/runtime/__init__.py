"""Services for the running program: threads, safe forks, lazy imports, text for terminals."""

DOOR = ("fork_safety", "install_hints", "lanes", "lazy_import", "logs", "safe_repr", "terminal_text", "threads", "warn")
"""Modules of this package that other packages may use."""
