"""JAX on several processes: one program on the devices of all processes."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.distributed.initialize()
rank, size = jax.process_index(), jax.process_count()
print(f"process {rank} of {size}, {jax.device_count()} devices")
digits = np.load("digits.npz")
mesh = Mesh(jax.devices(), "data")
split, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())


def rows(array):
    return jax.make_array_from_process_local_data(split, array[rank:1400:size])


def loss(weights, images, labels):
    hidden = jax.nn.relu(images @ weights["w1"] + weights["b1"])
    logits = jax.nn.log_softmax(hidden @ weights["w2"] + weights["b2"])
    return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))


@jax.jit
def step(weights, images, labels):
    gradients = jax.grad(loss)(weights, images, labels)
    return jax.tree.map(lambda w, g: w - 1.0 * g, weights, gradients)


keys = jax.random.split(jax.random.key(1), 2)
weights = {
    "w1": jax.random.normal(keys[0], (64, 64)) * 0.1,
    "b1": jnp.zeros(64),
    "w2": jax.random.normal(keys[1], (64, 10)) * 0.1,
    "b2": jnp.zeros(10),
}
weights = jax.tree.map(lambda w: jax.device_put(np.asarray(w), whole), weights)
images, labels = rows(digits["x_train"]), rows(digits["y_train"].astype("int32"))
for _ in range(150):
    weights = step(weights, images, labels)

final = {name: np.asarray(w.addressable_data(0)) for name, w in weights.items()}
hidden = np.maximum(digits["x_test"] @ final["w1"] + final["b1"], 0)
guessed = (hidden @ final["w2"] + final["b2"]).argmax(1)
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
digest = hashlib.sha256(b"".join(final[name].tobytes() for name in sorted(final)))
print("digest", digest.hexdigest())
