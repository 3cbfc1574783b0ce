"""Evaluate on a Dask cluster: a shop decides when to order, and how much.

    python examples/cluster.py [TARGETS]

The shop is simulated day by day with customers who come at random.  The fidelity is the number of days: few days are
cheap and noisy.  The cluster is two processes of this machine; a client of a real one is used in the same way.
"""

import sys

import boca

SPACE = boca.Space(reorder=boca.Int(5, 150), order=boca.Int(10, 400, log=True))
FIDELITY = boca.Space(days=boca.Int(200, 30_000, log=True))


def profit(x, z):
    """Return the mean profit per day.  A function travels to the workers whole; its imports happen there."""
    import numpy as np

    rng = np.random.default_rng(1)
    stock, coming, total = 50, [], 0.0
    for customers in rng.poisson(20, size=z["days"]):
        if coming and coming[0][0] == 0:
            stock += coming.pop(0)[1]
        sold = min(stock, customers)
        stock -= sold
        total += 5.0 * sold - 0.1 * stock - 2.0 * (customers - sold)  # sales, storage, and people who go elsewhere
        coming = [(days - 1, amount) for days, amount in coming]
        if stock <= x["reorder"] and not coming:
            coming.append((2, x["order"]))  # it comes in the morning after the next two
            total -= 60.0  # for the lorry
    return total / z["days"]


def main(budget: float = 8.0) -> None:
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        print(f"{len(client.nthreads())} workers are waiting.")
        result = boca.maximize(
            profit, SPACE, FIDELITY, cost=lambda z: z["days"], budget=boca.targets(budget), seed=0, executor=client
        )
    days = sum(trial.z["days"] for trial in result.history)
    print(f"Order {result.x['order']} when {result.x['reorder']} are left: a profit of {result.value:.2f} per day.")
    print(f"{len(result.history)} policies were tried on {days:,} days,", end=" ")
    print(f"which is {result.spent / 30_000:.1f} times the {30_000:,} days of a full simulation.")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
