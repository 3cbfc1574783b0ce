"""The live page: look at the studies of a storage in a browser while they run.

watch     a thread that keeps up with what changes there
money     what the page is told of the ledger
advice    the recommendation, in a process of its own and with a limit
views     what the page is told, as JSON
guard     who may ask, and for what
app       the addresses
server    a socket, and the end of it all
"""

from boca.dashboard.server import serve

__all__ = ["serve"]
