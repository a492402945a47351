"""What is decided before any row is written: options and storage of each column."""
