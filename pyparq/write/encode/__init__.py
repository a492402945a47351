"""From columns in memory to encoded column chunks."""
