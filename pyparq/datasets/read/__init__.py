"""Reading many files as one table."""
