"""From a history to a model: what was observed as arrays, the kernel on it, the fit, the posterior."""
