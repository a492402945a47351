"""What the running program needs: threads, safe forks, modules that load late, text for people."""

DOOR = ("fork_safety", "lazy_import", "safe_repr", "terminal_text", "threads")
"""Modules of this package that other packages may use."""
