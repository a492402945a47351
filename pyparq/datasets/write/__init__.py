"""Writing folders of files, committed together."""
