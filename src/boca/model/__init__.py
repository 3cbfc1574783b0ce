"""From a history to a model: the results as arrays, the kernel on them, the fit, the posterior."""
