"""Train a small network on digits with PyTorch, a result after every epoch: stop it, kill it, and run it again.

    pip install torch && python examples/training.py

Each trial reports its epochs, leaves a checkpoint, and may be continued by a later one.  The study is in training.db.
"""

import torch
from sklearn.datasets import load_digits

import boca

X, y = (torch.tensor(part) for part in load_digits(return_X_y=True))
X, valid = X.float() / 16, torch.arange(len(y)) % 4 == 0


def error(x, z, run: boca.Run):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, x["width"]), torch.nn.ReLU(), torch.nn.Linear(x["width"], 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=x["lr"], momentum=x["momentum"])
    if run.start:
        state = torch.load(run.checkpoint / "state.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for epoch in run.steps():
        for batch in torch.randperm(len(y), generator=torch.Generator().manual_seed(epoch)).split(64):
            batch = batch[~valid[batch]]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(X[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            run.report(epoch, torch.nn.functional.cross_entropy(model(X[valid]), y[valid]).item())
    with run.save() as folder:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "state.pt")


space = boca.Space(lr=boca.Float(1e-3, 1, log=True), momentum=boca.Float(0, 0.95), width=boca.Int(8, 256, log=True))
fidelity = boca.Space(epochs=boca.Steps(1, 30))
result = boca.minimize(
    error,
    space,
    fidelity,
    cost=lambda z: z["epochs"],
    budget=boca.targets(10),
    storage="sqlite:///training.db",
    name="mlp",
    seed=0,
)
print(result.x, result.value)
