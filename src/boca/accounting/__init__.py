"""What a trial costs, what is spent, and what is left."""
