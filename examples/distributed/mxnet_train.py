"""MXNet with a parameter server: workers push gradients and pull the same weights."""

import hashlib

import mxnet as mx  # In a scheduler or server this call does not return.
import numpy as np
from mxnet import autograd, gluon, nd

store = mx.kvstore.create("dist_sync")
print(f"rank {store.rank} of {store.num_workers}")
digits = np.load("digits.npz")
images = nd.array(digits["x_train"][store.rank :: store.num_workers])
labels = nd.array(digits["y_train"][store.rank :: store.num_workers])

mx.random.seed(1)
net = gluon.nn.Sequential()
net.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(10))
net.initialize(mx.init.Xavier())
net(images[:1])
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, kvstore=store)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
for _ in range(5):
    for start in range(0, 1400 // store.num_workers - 32, 32):
        with autograd.record():
            value = loss(net(images[start : start + 32]), labels[start : start + 32])
        value.backward()
        trainer.step(32 * store.num_workers)

guessed = net(nd.array(digits["x_test"])).asnumpy().argmax(1)
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
weights = [net.collect_params()[name].data().asnumpy() for name in net.collect_params()]
print("digest", hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest())
