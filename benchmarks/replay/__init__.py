"""Studies that one commit made, and the same decisions made again by another one."""

COMMIT = "4413025d53785f46efb80030d4b1868fcea89a2d"
"""The commit whose decisions are the reference."""
