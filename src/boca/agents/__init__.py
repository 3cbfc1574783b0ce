"""Studies for agents: a server of the Model Context Protocol over standard input and output."""

from boca.agents.server import serve

__all__ = ["serve"]
