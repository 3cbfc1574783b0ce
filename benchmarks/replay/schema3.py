"""A database of version 3, with what the commit that made it suggests next: the fixture `tests/study/storage/schema3`.

    python -m benchmarks.replay.schema3 --out tests/study/storage/schema3

It runs with the sources of a commit whose tables have version 3, and refuses others; tests take the studies from here.
"""

from __future__ import annotations

from benchmarks.replay import cases
from benchmarks.replay.cases import boca, paper, plain
from benchmarks.replay.schema1 import Stored
from benchmarks.replay.schema2 import write
from boca import targets

VERSION = 3

STUDIES: tuple[Stored, ...] = (
    Stored(plain("finished", cases.NEAR, boca(), budget=targets(4))),
    Stored(
        plain("boca", cases.ONE, boca(), budget=targets(8), imported=3, steps=9, fails=lambda k: k in (4, 8)),
        running=2,
        waiting=(({"a": 0.5, "b": 1.0}, {"n": 0.25}),),
    ),
    Stored(plain("no budget", cases.NONE, boca(), budget=None, steps=10, fails=lambda k: k == 3), running=3),
    Stored(plain("choices", cases.KINDS, boca(), budget=targets(9), steps=9, tells_noise=True), running=1),
    Stored(plain("paper", cases.ONE, paper(), budget=targets(4), steps=9, fails=lambda k: k == 2), running=1),
)

if __name__ == "__main__":
    write(STUDIES, VERSION)
