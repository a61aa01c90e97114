"""PyTorch, DistributedDataParallel over gloo; continues from its last checkpoint.

`submarine run torch_ddp.py --file digits.npz --worker 2 --wait`

`submarine rerun JOB --resume` continues from the last epoch of a job.
"""

# %%
import hashlib
import os

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size}, local rank {os.environ['LOCAL_RANK']}")

# %%
digits = np.load("digits.npz")
data = TensorDataset(torch.from_numpy(digits["x_train"]), torch.from_numpy(digits["y_train"]))
sampler = DistributedSampler(data, seed=1)
loader = DataLoader(data, batch_size=32, sampler=sampler)

# %%
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
checkpoint = os.path.join(os.environ.get("SUBMARINE_CHECKPOINT_DIR", "."), "last.pt")
first = 0
if os.path.exists(checkpoint):
    state = torch.load(checkpoint)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["epoch"] + 1

# %%
for epoch in range(first, 5):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(ddp(images), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
    if rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, checkpoint + ".part")
        os.rename(checkpoint + ".part", checkpoint)

with torch.no_grad():
    guessed = model(torch.from_numpy(digits["x_test"])).argmax(1).numpy()
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
weights = b"".join(w.detach().numpy().tobytes() for w in model.parameters())
print("digest", hashlib.sha256(weights).hexdigest())
dist.barrier()
dist.destroy_process_group()
