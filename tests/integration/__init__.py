"""Whole runs: many processes on one study, and what is left when they are killed."""
