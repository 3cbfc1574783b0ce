"""Who holds running trials: what is alive, gone, or has left them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import boca
from boca.study.storage import Lease, Owner
from boca.study.storage.holders import holders
from boca.study.storage.reader import Reader

PROBLEM = boca.Problem(boca.Space(a=boca.Float(0, 1)))
GONE = replace(Owner.me(), started="in another life")
FAR = replace(Owner.me(), machine="far/boot/pid")


def test_the_life_of_every_holder_is_told(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    opt = boca.Optimizer(PROBLEM, budget=boca.targets(50), strategy=boca.RandomSearch(), seed=0, storage=url, name="s")
    left = Lease()
    for lease in (None, Lease(), Lease(owner=GONE), Lease(owner=FAR), Lease(owner=FAR, seconds=0.0), left):
        opt.ask(lease=lease)
    opt.storage.release(left)
    opt.tell(opt.ask(), 1.0)
    with closing(Reader(url)) as reader:
        row = reader.row("s")
        found = reader.read(lambda connection: holders(reader, connection, row))
    assert [found[k].life for k in range(6)] == ["by hand", "alive", "dead", "alive", "silent", "left"]
    assert len(found) == 6
    assert [holder.works for holder in found.values()] == [True, True, False, True, False, False]
    assert (found[1].host, found[1].process) == (Owner.me().host, Owner.me().pid)
    assert found[3].host == "far"
    opt.storage.close()
