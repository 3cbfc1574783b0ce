"""Three programs in the shape of Optuna's tutorial, and each as a program of boca: at most five lines are new.

They are a quadratic function, a choice between two models with parameters of their own, and a model that is trained
step by step.
"""

from __future__ import annotations

import difflib
import inspect
import textwrap

import pytest

import boca

pytest.importorskip("optuna", reason="the extra optuna is not installed")


def quadratic_in_optuna():
    import optuna

    def objective(trial):
        x = trial.suggest_float("x", -10, 10)
        return (x - 2) ** 2

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=20)
    return study


def quadratic_in_boca():
    import boca

    def objective(trial):
        x = trial["x"]
        return (x - 2) ** 2

    return boca.minimize(objective, boca.Space(x=(-10.0, 10.0)), budget=boca.targets(20), seed=0)


def models_in_optuna():
    import optuna
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    data, target = load_iris(return_X_y=True)

    def objective(trial):
        name = trial.suggest_categorical("classifier", ["SVC", "RandomForest"])
        if name == "SVC":
            model = SVC(C=trial.suggest_float("svc_c", 1e-10, 1e10, log=True), gamma="auto")
        else:
            depth = trial.suggest_int("rf_max_depth", 2, 32, log=True)
            model = RandomForestClassifier(max_depth=depth, n_estimators=10, random_state=0)
        return cross_val_score(model, data, target, cv=3).mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=12)
    return study


def models_in_boca():
    import optuna
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    from boca.integrations.optuna import BocaSampler

    data, target = load_iris(return_X_y=True)

    def objective(trial):
        name = trial.suggest_categorical("classifier", ["SVC", "RandomForest"])
        if name == "SVC":
            model = SVC(C=trial.suggest_float("svc_c", 1e-10, 1e10, log=True), gamma="auto")
        else:
            depth = trial.suggest_int("rf_max_depth", 2, 32, log=True)
            model = RandomForestClassifier(max_depth=depth, n_estimators=10, random_state=0)
        return cross_val_score(model, data, target, cv=3).mean()

    svc, forest = {"when": {"classifier": ["SVC"]}}, {"when": {"classifier": ["RandomForest"]}}
    c, depth = boca.Float(1e-10, 1e10, log=True, **svc), boca.Int(2, 32, log=True, **forest)
    space = boca.Space(classifier=boca.Choice(["SVC", "RandomForest"]), svc_c=c, rf_max_depth=depth)
    study = optuna.create_study(direction="maximize", sampler=BocaSampler(space=space, seed=0))
    study.optimize(objective, n_trials=12)
    return study


def training_in_optuna():
    import optuna
    from sklearn.datasets import load_iris
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import train_test_split

    data, target = load_iris(return_X_y=True)
    train_x, valid_x, train_y, valid_y = train_test_split(data, target, test_size=0.25, random_state=0)

    def objective(trial):
        alpha = trial.suggest_float("alpha", 1e-5, 1e-1, log=True)
        model = SGDClassifier(alpha=alpha, random_state=0)
        for step in range(30):
            model.partial_fit(train_x, train_y, classes=[0, 1, 2])
            trial.report(1.0 - model.score(valid_x, valid_y), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return 1.0 - model.score(valid_x, valid_y)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner())
    study.optimize(objective, n_trials=10)
    return study


def training_in_boca():
    from sklearn.datasets import load_iris
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import train_test_split

    import boca

    data, target = load_iris(return_X_y=True)
    train_x, valid_x, train_y, valid_y = train_test_split(data, target, test_size=0.25, random_state=0)

    def objective(x, z):
        alpha = x["alpha"]
        model = SGDClassifier(alpha=alpha, random_state=0)
        for _ in range(z["steps"]):
            model.partial_fit(train_x, train_y, classes=[0, 1, 2])
        return 1.0 - model.score(valid_x, valid_y)

    space, steps = boca.Space(alpha=(1e-5, 1e-1, "log")), boca.Space(steps=(1, 30))
    return boca.minimize(objective, space, steps, cost=lambda z: z["steps"], budget=boca.targets(10), seed=0)


def new_lines(one, other):
    """Return the lines of the second program that the first does not have; imports and blank lines do not count."""
    first, second = (
        [line.rstrip() for line in textwrap.dedent(inspect.getsource(f)).splitlines()[1:]] for f in (one, other)
    )
    added = [line[2:].strip() for line in difflib.ndiff(first, second) if line.startswith("+ ")]
    return [line for line in added if line and not line.startswith(("import ", "from "))]


PORTED = [
    (quadratic_in_optuna, quadratic_in_boca),
    (models_in_optuna, models_in_boca),
    (training_in_optuna, training_in_boca),
]


@pytest.mark.parametrize(("one", "other"), PORTED, ids=["quadratic", "models", "training"])
def test_at_most_five_lines_are_new(one, other):
    assert 1 <= len(new_lines(one, other)) <= 5, new_lines(one, other)


def test_both_find_the_bottom_of_the_quadratic():
    assert quadratic_in_optuna().best_value < 4.0
    found = quadratic_in_boca()
    assert found.value == (found.x["x"] - 2) ** 2 < 0.01


def test_both_choose_between_models():
    for study in (models_in_optuna(), models_in_boca()):
        assert study.best_value > 0.9
        assert set(study.best_params) in ({"classifier", "svc_c"}, {"classifier", "rf_max_depth"})


def test_both_train_a_model():
    assert 0.0 <= training_in_optuna().best_value < 0.4
    assert 0.0 <= training_in_boca().value < 0.4


def test_a_program_with_more_new_lines_would_be_found():
    assert len(new_lines(quadratic_in_optuna, models_in_boca)) > 5
    assert boca.Boca
