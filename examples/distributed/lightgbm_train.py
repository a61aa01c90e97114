"""LightGBM: each worker has its own rows; histograms are shared, and the trees are the same.

`submarine run lightgbm_train.py --file digits.npz --worker 2 --wait`
"""

# %%
import hashlib
import os

import lightgbm
import numpy as np

index, count = int(os.environ.get("TASK_INDEX", 0)), int(os.environ.get("TASK_NUM", 1))
print(f"part {index} of {count}")

# %%
digits = np.load("digits.npz")
train = lightgbm.Dataset(digits["x_train"][index::count], digits["y_train"][index::count])
parameters = {
    "objective": "multiclass",
    "num_class": 10,
    "num_threads": 1,
    "num_leaves": 15,
    "min_data_in_leaf": 5,
    "verbosity": -1,
}
model = lightgbm.train(parameters, train, num_boost_round=20)

# %%
guessed = model.predict(digits["x_test"]).argmax(1)
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
trees = model.model_to_string().split("\nparameters:")[0]  # The parameters contain a port.
print("digest", hashlib.sha256(trees.encode()).hexdigest())
if index == 0:
    model.save_model(os.path.join(os.environ.get("SUBMARINE_MODEL_DIR", "."), "model.txt"))
