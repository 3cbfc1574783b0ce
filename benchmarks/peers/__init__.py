"""Other people's optimisers on the same problems, with the same noise, capital and seeds; see README.md here.

Each adapter is a strategy of boca, so `boca bench run --method benchmarks.peers.botorch:QLogNEI` runs it.  The
libraries are imported where they are used, and live in an environment of their own: `make peers`.
"""
