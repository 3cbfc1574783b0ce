"""From a model to a point: acquisition functions, and the search for their maximum."""
