"""The facts that a map of a file shows: where everything lies, and what a query made of it."""
