"""What evaluates: the driver of a run, its callbacks, and the executors."""
