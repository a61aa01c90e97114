"""One trial of `optuna_study.py`: XGBoost with the parameters of the job."""

import os

import numpy as np
import xgboost

digits = np.load("digits.npz")
parameters = {
    "objective": "multi:softmax",
    "num_class": 10,
    "nthread": 1,
    "max_depth": int(os.environ["SUBMARINE_PARAM_MAX_DEPTH"]),
    "eta": float(os.environ["SUBMARINE_PARAM_ETA"]),
}
train = xgboost.DMatrix(digits["x_train"], digits["y_train"])
model = xgboost.train(parameters, train, num_boost_round=10)
guessed = model.predict(xgboost.DMatrix(digits["x_test"]))
accuracy = float((guessed == digits["y_test"]).mean())
print(f"accuracy {accuracy:.4f}")
