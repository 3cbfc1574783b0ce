"""What a user speaks of: spaces, problems, trials, budgets, and what can go wrong with them.  All of it is frozen."""
