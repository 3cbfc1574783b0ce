"""Spaces, problems, trials, budgets and errors: the nouns of the user.  All of them are immutable."""
