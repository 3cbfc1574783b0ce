"""A database of version 4, with what the commit that made it suggests next: the fixture `tests/study/storage/schema4`.

    python -m benchmarks.replay.schema4 --out tests/study/storage/schema4

It runs with the sources of a commit whose tables have version 4, and refuses others; tests take the studies from here.
"""

from __future__ import annotations

from benchmarks.replay import cases
from benchmarks.replay.cases import boca, plain
from benchmarks.replay.schema1 import Stored
from benchmarks.replay.schema2 import write
from boca import Float, Int, Problem, Space, targets

VERSION = 4

# an integer fidelity, which may become `Steps` of the same bounds
EPOCHS = Problem(Space(a=Float(0.0, 1.0)), Space(epochs=Int(1, 9)), cost=lambda z: float(z["epochs"]))

STUDIES: tuple[Stored, ...] = (
    Stored(
        plain("boca", cases.ONE, boca(), budget=targets(8), imported=3, steps=8, fails=lambda k: k == 4),
        running=2,
        waiting=(({"a": 0.5, "b": 1.0}, {"n": 0.25}),),
    ),
    Stored(plain("epochs", EPOCHS, ("RandomSearch", {}), budget=targets(9), steps=4), running=1),
)

if __name__ == "__main__":
    write(STUDIES, VERSION)
