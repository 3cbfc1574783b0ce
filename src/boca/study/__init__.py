"""What remembers: the optimizer, its recommendation, and the storages of its trials."""
