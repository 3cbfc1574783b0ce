"""What stores a study.  A package, so that its modules may be named like those of other directories."""
