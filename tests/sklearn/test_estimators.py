"""NetworkClassifier and NetworkRegressor keep the rules of scikit-learn and work with its tools."""

import pickle

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from neural.core.errors import TaskError
from neural.sklearn import NetworkClassifier, NetworkRegressor

PROGRAM = """network Rows {
  input: (features,)  # features: the columns of X
  layers:
    Dense(8, activation="relu")
    Output(outputs, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.02)
  train { steps: 30 }
}
"""
IMAGES = """network Images {
  input: (8, 8)
  layers:
    TransformerEncoder(num_heads=2, d_model=8, dff=16)
    GlobalAveragePooling1D()
    Output(12, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  train { steps: 3 }
}
"""
BINARY = PROGRAM.replace('Output(outputs, activation="softmax")', 'Output(1, activation="sigmoid")')
BINARY = BINARY.replace("sparse_categorical_crossentropy", "binary_crossentropy")


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.mark.parametrize("estimator", [NetworkClassifier(), NetworkRegressor()], ids=repr)
def test_an_estimator_passes_all_checks_of_scikit_learn(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail="raise")
    states = [result["status"] for result in results]
    assert set(states) <= {"passed", "skipped"}
    assert states.count("passed") > 50
    # needs an environment variable that is read when scipy is imported
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    assert skipped in ([], ["check_array_api_input"])


def test_a_pipeline_learns_flowers_by_name(flowers):
    X, y = flowers
    model = make_pipeline(StandardScaler(), NetworkClassifier(random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.predict(X[:2]).tolist() == ["setosa", "setosa"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


def test_a_pipeline_learns_numbers(flowers):
    X = StandardScaler().fit_transform(flowers[0])
    model = NetworkRegressor(random_state=0).fit(X[:, :3], X[:, 3])
    assert model.score(X[:, :3], X[:, 3]) > 0.8


def test_a_regressor_learns_targets_of_any_scale():
    X, y = load_diabetes(return_X_y=True)
    model = NetworkRegressor(random_state=0)
    scores = cross_val_score(model, X, y, cv=3)
    assert scores.min() > 0.3
    predicted = model.fit(X, y).predict(X)
    np.testing.assert_allclose(predicted.mean(), y.mean(), rtol=0.2)
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == predicted.tolist()


def test_a_regressor_with_a_limited_output_learns_the_targets_as_they_are(flowers):
    X = flowers[0]
    program = NetworkRegressor.default_program.replace('"linear"', '"relu"')
    model = NetworkRegressor(program, epochs=1, random_state=0).fit(X[:, :3], X[:, 3])
    assert model.predict(X[:, :3]).min() >= 0
    assert model.run_ is None


def test_a_grid_searches_the_learning_rate(flowers):
    X, y = flowers
    pipeline = make_pipeline(StandardScaler(), NetworkClassifier(epochs=2, random_state=0))
    grid = GridSearchCV(pipeline, {"networkclassifier__learning_rate": [1e-6, 0.03]}, cv=2)
    assert grid.fit(X, y).best_params_ == {"networkclassifier__learning_rate": 0.03}


def test_cross_validation_gives_a_score_per_fold(flowers):
    X, y = flowers
    model = make_pipeline(StandardScaler(), NetworkClassifier(PROGRAM, random_state=0))
    assert cross_val_score(model, X, y, cv=3).min() > 0.7


def test_the_same_random_state_gives_the_same_model(flowers):
    X, y = flowers
    model = NetworkClassifier(PROGRAM, steps=3, random_state=5)
    first = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X), first)
    other = clone(model).set_params(random_state=6).fit(X, y).predict_proba(X)
    assert np.abs(other - first).max() > 0.01


def test_a_fitted_estimator_can_be_pickled(flowers):
    X, y = flowers
    model = NetworkClassifier(PROGRAM, steps=3, random_state=0).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.classes_.tolist() == model.classes_.tolist()


def test_names_in_a_program_stand_for_the_sizes_of_the_data(flowers):
    X, y = flowers
    model = NetworkClassifier(PROGRAM, steps=1).fit(X, y)
    assert "input: (4,)  # features: the columns of X" in model.program_
    assert "Output(3, " in model.program_


def test_a_program_can_be_a_file(flowers, tmp_path):
    X, y = flowers
    path = tmp_path / "rows.neural"
    path.write_text(PROGRAM)
    text_model = NetworkClassifier(PROGRAM, steps=2, random_state=0).fit(X, y)
    file_model = NetworkClassifier(path, steps=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(file_model.predict_proba(X), text_model.predict_proba(X))
    with pytest.raises(TaskError, match="cannot be read: no such file"):
        NetworkClassifier(tmp_path / "rose.neural").fit(X, y)


def test_rows_get_the_shape_of_the_networks_input():
    X, y = load_digits(return_X_y=True)
    model = NetworkClassifier(IMAGES, random_state=0).fit(X[:100], y[:100])
    # the network has 12 units, the data 10 classes
    assert model.predict_proba(X[:5]).shape == (5, 10)
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1, rtol=1e-5)


def test_one_sigmoid_unit_is_a_classifier_of_two_classes(flowers):
    X, y = flowers
    X, y = X[:100], y[:100]
    model = make_pipeline(StandardScaler(), NetworkClassifier(BINARY, random_state=0)).fit(X, y)
    assert model.predict_proba(X).shape == (100, 2)
    assert model.score(X, y) > 0.9


def test_columns_of_a_frame_must_be_those_of_the_training(flowers):
    X, y = flowers
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    model = NetworkClassifier(PROGRAM, steps=1).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="seen at fit time, yet now missing"):
        model.predict(frame[["a", "b", "c"]])


def test_an_estimator_that_is_not_fitted_says_so(flowers):
    with pytest.raises(NotFittedError):
        NetworkClassifier().predict(flowers[0])


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (NetworkClassifier(PROGRAM.replace("features", "9")), r"has 4 numbers, but Rows takes"),
        (NetworkClassifier(PROGRAM.replace("outputs", "2")), "integers from 0 to 1"),
        (NetworkClassifier(NetworkRegressor.default_program), "predicts values, not classes"),
        (NetworkClassifier(PROGRAM.replace("Dense", "Denze")), "did you mean `Dense`"),
        (NetworkClassifier(settings={"training": {"stepz": 3}}), "did you mean `steps`"),
    ],
)
def test_a_network_that_does_not_fit_the_data_is_a_value_error(estimator, message, flowers):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*flowers)


def test_a_regressor_refuses_a_classifying_network(flowers):
    X, _ = flowers
    with pytest.raises(TaskError, match="must predict one value"):
        NetworkRegressor(PROGRAM.replace("outputs", "3")).fit(X, X[:, 0])


def test_a_run_folder_is_kept_if_wanted(flowers, tmp_path):
    X, y = flowers
    kept = NetworkClassifier(PROGRAM, steps=2, runs=tmp_path / "runs").fit(X, y)
    assert (kept.run_ / "settings.json").exists()
    assert NetworkClassifier(PROGRAM, steps=2).fit(X, y).run_ is None
    assert len(list((tmp_path / "runs").iterdir())) == 1
    assert kept.n_iter_ == 2
    assert len(kept.history_["train/loss"]) == 2


@pytest.mark.parametrize("estimator", [NetworkClassifier, NetworkRegressor])
def test_a_misspelt_parameter_names_the_estimator_and_the_right_one(estimator):
    message = f"{estimator.__name__} has no parameter `epoch`; did you mean `epochs`"
    with pytest.raises(TypeError, match=message):
        estimator(epoch=2)
