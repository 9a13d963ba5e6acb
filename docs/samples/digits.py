"""Recognition of handwritten digits: a network of flax, trained with optax, compiled by any jit."""

import jax
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits

import simkit

TRAINED, BATCH = 1437, 64


class Network(nn.Module):
    """Two convolutions, and a score for each of ten digits."""

    @nn.compact
    def __call__(self, images):
        """Return ten scores for each of ``(images, 8, 8)`` pixels."""
        x = nn.relu(nn.Conv(16, (3, 3))(images[..., None]))
        x = nn.relu(nn.Conv(32, (3, 3), strides=2)(x))
        return nn.Dense(10)(x.reshape(len(x), -1))


def learn(jit, epochs=6, seed=0):
    """Return the fraction of 360 test digits that is recognized after each epoch, and the network's parameters."""
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images, digits = images[order].reshape(-1, 8, 8).astype(np.float32) / 16, digits[order].astype(np.int32)
    network, optimizer = Network(), optax.adam(2e-3)

    @jit
    def update(params, memory, images, digits):
        def loss(params):
            guesses = network.apply(params, images)
            return optax.softmax_cross_entropy_with_integer_labels(guesses, digits).mean()

        changes, memory = optimizer.update(jax.grad(loss)(params), memory, params)
        return optax.apply_updates(params, changes), memory

    @jit
    def recognize(params, images):
        return network.apply(params, images).argmax(axis=-1)

    params = network.init(jax.random.key(seed), images[:1])
    memory, shares = optimizer.init(params), []
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(TRAINED)
        for batch in order[: TRAINED - TRAINED % BATCH].reshape(-1, BATCH):
            params, memory = update(params, memory, images[batch], digits[batch])
        shares.append(float(np.mean(np.asarray(recognize(params, images[TRAINED:])) == digits[TRAINED:])))
    return shares, params


if __name__ == "__main__":
    for name, jit in (("jax", jax.jit), ("onnxruntime", simkit.onnxjit)):
        print(f"{name:11}", *(f"{share:.3f}" for share in learn(jit)[0]))
