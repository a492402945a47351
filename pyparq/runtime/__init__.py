"""What the running program needs: threads, safe forks, modules that load late, text for people."""
