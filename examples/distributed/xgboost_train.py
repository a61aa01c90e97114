"""XGBoost: each worker has its own rows, and all workers build the same trees.

`submarine run xgboost_train.py --file digits.npz --worker 2 --wait`

The evaluation of each round is in the stream `helper` of the log.
"""

# %%
import hashlib
import os

import numpy as np
import xgboost
from xgboost import collective

# %%
with collective.CommunicatorContext():
    rank, size = collective.get_rank(), collective.get_world_size()
    print(f"rank {rank} of {size}")
    print("version", xgboost.__version__)
    digits = np.load("digits.npz")
    train = xgboost.DMatrix(digits["x_train"][rank::size], digits["y_train"][rank::size])
    test = xgboost.DMatrix(digits["x_test"], digits["y_test"])
    parameters = {"objective": "multi:softmax", "num_class": 10, "nthread": 1, "max_depth": 4}
    model = xgboost.train(parameters, train, num_boost_round=15, evals=[(test, "test")])
    guessed = model.predict(test)
    print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
    print("digest", hashlib.sha256("".join(model.get_dump()).encode()).hexdigest())
    if rank == 0:
        model.save_model(os.path.join(os.environ.get("SUBMARINE_MODEL_DIR", "."), "model.json"))
