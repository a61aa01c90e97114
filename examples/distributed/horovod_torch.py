"""Horovod with PyTorch: gradients are averaged over all processes."""

import hashlib

import horovod.torch as hvd
import numpy as np
import torch

hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}, local rank {hvd.local_rank()}")
digits = np.load("digits.npz")
images = torch.from_numpy(digits["x_train"][hvd.rank() :: hvd.size()])
labels = torch.from_numpy(digits["y_train"][hvd.rank() :: hvd.size()])

torch.manual_seed(hvd.rank())
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for _ in range(5):
    for start in range(0, 1400 // hvd.size() - 32, 32):
        optimizer.zero_grad()
        chosen = slice(start, start + 32)
        torch.nn.functional.cross_entropy(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()

with torch.no_grad():
    guessed = model(torch.from_numpy(digits["x_test"])).argmax(1).numpy()
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
weights = b"".join(w.detach().numpy().tobytes() for w in model.parameters())
print("digest", hashlib.sha256(weights).hexdigest())
hvd.shutdown()
