"""PyTorch, FSDP2: each worker holds and saves a part of the model; continues from the last step.

`submarine run fsdp2_train.py --file digits.npz --worker 2 --wait`

A checkpoint has a file of each worker. A restarted job gets the files of all workers and loads them
by PyTorch's own call, also with another number of workers: `run --resume JOB --worker 1`.
"""

# %%
import hashlib
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

# Without a GPU, PyTorch 2.6 lacks these two methods.
if not hasattr(torch.cpu.Stream, "record_event"):
    torch.cpu.Stream.record_event = lambda self, event=None: torch.cpu.Event()
    torch.cpu.Stream.wait_event = lambda self, event: None

device = "cuda" if torch.cuda.is_available() else "cpu"
dist.init_process_group("nccl" if device == "cuda" else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size}")

# %%
digits = np.load("digits.npz")
images = torch.from_numpy(digits["x_train"]).to(device)
labels = torch.from_numpy(digits["y_train"]).to(device)

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
model.to(device)
fully_shard(model, mesh=init_device_mesh(device, (size,)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

# %%
folder = Path(os.environ.get("SUBMARINE_CHECKPOINT_DIR", "checkpoints"))
saved = sorted(folder.glob("step_*/.metadata"), key=lambda path: int(path.parent.name[5:]))
first = 0
if saved:
    weights, state = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=saved[-1].parent)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    first = int(saved[-1].parent.name[5:])
    print(f"continues after epoch {first}")

# %%
last = int(os.environ.get("SUBMARINE_PARAM_EPOCHS", 6))
for epoch in range(first, last):
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    for chosen in order[rank::size].split(32):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder / f"step_{epoch + 1}")

# %%
whole = {name: part.full_tensor().cpu() for name, part in model.state_dict().items()}
hidden = np.maximum(digits["x_test"] @ whole["0.weight"].numpy().T + whole["0.bias"].numpy(), 0)
guessed = (hidden @ whole["2.weight"].numpy().T + whole["2.bias"].numpy()).argmax(1)
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
print("digest", hashlib.sha256(b"".join(w.numpy().tobytes() for w in whole.values())).hexdigest())
if rank == 0:
    torch.save(whole, os.path.join(os.environ.get("SUBMARINE_MODEL_DIR", "."), "model.pt"))
dist.destroy_process_group()
