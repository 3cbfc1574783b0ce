"""Functions of other libraries, by their names and arguments: for programs that were written for them."""
