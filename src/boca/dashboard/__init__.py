"""The live page: look at the studies of a storage in a browser while they run.

watch     a thread that reads what changed in the database
spending  the budget, as JSON
advice    the recommendation, computed in a separate process with a time limit
views     everything else that the page shows, as JSON
access    which requests are answered
app       the addresses
server    the socket, and the end
"""

from boca.dashboard.server import serve

__all__ = ["serve"]
