import numpy as np
import sklearn
from refusals import refused
from sklearn.model_selection import GridSearchCV

from bimichi import BiMIChI, SceneKFold, make_bag_scorer


def test_scenes_stay_together_and_every_fold_has_both_classes(rng):
    scenes = np.repeat(np.arange(11), 20)
    y = ((scenes % 2 == 0) & (np.arange(220) % 20 < 3)).astype(int)  # six scenes with targets, five without
    folds = list(SceneKFold(3).split(y, y, scenes))
    assert len(folds) == SceneKFold(3).get_n_splits() == 3
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(220))
    for train, test in folds:
        assert not set(scenes[train]) & set(scenes[test])
        assert set(y[test]) == set(y[train]) == {0, 1}


def test_what_cannot_be_divided_is_explained():
    y, groups = [1, 0, 1, 0], ["a", "a", "b", "b"]
    with refused("splits-many:n_splits", "n_splits=2"):
        list(SceneKFold(3).split(y, y, groups))
    with refused("groups-missing"):
        list(SceneKFold(2).split(y, y))
    with refused("splits-many"):
        list(SceneKFold(2).split(y, [1, 1, 1, 0], ["a", "b", "c", "d"]))


def test_bags_are_scored_by_their_largest_output(rng):
    """One instance of each positive bag shows the target: labels of all instances would score a perfect model badly."""
    bags = np.repeat(np.arange(40), 10)
    y = (bags % 2 == 0).astype(int)
    X = rng.uniform(-1, 0.5, (400, 2))
    X[(np.arange(400) % 10 == 4) & (y == 1)] = 0.9
    model = BiMIChI("bipolar", random_state=0).fit(X, y, bags)
    order = rng.permutation(400)
    with sklearn.config_context(enable_metadata_routing=True):
        for score in ("average_precision", "auc"):
            assert make_bag_scorer(score)(model, X, y, bags=bags) == 1
            assert make_bag_scorer(score)(model, X[order], y[order], bags=bags[order]) == 1
    with refused("scorer-bags"):
        make_bag_scorer()(model, X, y)
    with refused("choice:score"):
        make_bag_scorer("rmse")
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            BiMIChI("mean", random_state=0).set_fit_request(bags=True),
            {"additivity": [1, 2]},
            scoring=make_bag_scorer("auc").set_score_request(bags=True),
            cv=SceneKFold(4),
        )
        assert search.fit(X, y, bags=bags, groups=bags).best_score_ > 0.99
