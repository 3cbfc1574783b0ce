"""From a model to a point: what is worth trying, and how its maximum is found."""
