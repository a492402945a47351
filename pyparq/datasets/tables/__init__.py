"""Tables of Delta Lake and Apache Iceberg: which files they have, under which names, without which rows."""
