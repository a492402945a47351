"""Decisions before any row is written: options, types and storage of each column."""
