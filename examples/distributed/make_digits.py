"""Write digits.npz for the other examples: the digits of scikit-learn, shuffled and split."""

import numpy as np
from sklearn.datasets import load_digits

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
images = (digits.data[order] / 16.0).astype("float32")
labels = digits.target[order].astype("int64")
np.savez_compressed(
    "digits.npz",
    x_train=images[:1400],
    y_train=labels[:1400],
    x_test=images[1400:],
    y_test=labels[1400:],
)
