"""Other optimizers on the same problems, with the same noise, budgets and seeds; see README.md here.

Each adapter is a strategy of boca, so `boca bench run --method benchmarks.peers.botorch:QLogNEI` runs it.  The
libraries are imported when they are used, and installed in a separate environment: `make peers`.
"""
