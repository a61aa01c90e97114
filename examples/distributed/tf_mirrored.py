"""TensorFlow, MultiWorkerMirroredStrategy: each worker trains on its share, with the same weights.

Keras 3 does not support `fit` with this strategy, so TensorFlow uses tf_keras here.
"""

import hashlib
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
print(f"task {resolver.task_type}:{resolver.task_id} of {strategy.num_replicas_in_sync}")

digits = np.load("digits.npz")
batch = 32 * strategy.num_replicas_in_sync
train = tf.data.Dataset.from_tensor_slices((digits["x_train"], digits["y_train"]))
train = train.shuffle(1400, seed=1).repeat().batch(batch, drop_remainder=True)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
train = train.with_options(options)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(64, activation="relu", input_shape=(64,)),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=tf.keras.optimizers.Adam(0.01),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )

model.fit(train, epochs=5, steps_per_epoch=1400 // batch, verbose=2)

weights = model.get_weights()
hidden = np.maximum(digits["x_test"] @ weights[0] + weights[1], 0)
guessed = (hidden @ weights[2] + weights[3]).argmax(1)
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
print("digest", hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest())
if resolver.task_type == "chief" or resolver.task_id == 0:
    folder = os.environ.get("SUBMARINE_MODEL_DIR", ".")
    np.savez(os.path.join(folder, "weights.npz"), *weights)
