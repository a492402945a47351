"""Rows of files that exist are deleted, updated and replaced: row groups without such rows are copied as they are."""
