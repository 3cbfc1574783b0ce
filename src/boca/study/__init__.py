"""What remembers: the optimiser, its recommendation, and the storages of its trials."""
