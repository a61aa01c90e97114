"""DeepSpeed, ZeRO stage 1: the state of the optimizer is divided among the workers.

`submarine run deepspeed_train.py --file digits.npz --worker 2 --env DS_ACCELERATOR=cpu --wait`

With GPUs leave out `--env DS_ACCELERATOR=cpu`.
"""

# %%
import hashlib
import os

import deepspeed
import numpy as np
import torch
import torch.distributed as dist

gpu = torch.cuda.is_available()
if not gpu:
    # gloo alone: DeepSpeed would compile an operator for shared memory, with PyTorch's headers.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed("nccl" if gpu else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size}")

# %%
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    config={
        "train_micro_batch_size_per_gpu": 32,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    },
)

# %%
digits = np.load("digits.npz")
images = torch.from_numpy(digits["x_train"]).to(engine.device)
labels = torch.from_numpy(digits["y_train"]).to(engine.device)
folder = os.environ.get("SUBMARINE_CHECKPOINT_DIR", "checkpoints")
path, state = engine.load_checkpoint(folder)
first = state["epoch"] if path else 0

for epoch in range(first, 6):
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    for chosen in order[: len(order) // (32 * size) * 32 * size][rank::size].split(32):
        loss = torch.nn.functional.cross_entropy(engine(images[chosen]), labels[chosen])
        engine.backward(loss)
        engine.step()
    print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    engine.save_checkpoint(folder, client_state={"epoch": epoch + 1})

# %%
network = engine.module.cpu()
with torch.no_grad():
    guessed = network(torch.from_numpy(digits["x_test"])).argmax(1).numpy()
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
weights = b"".join(w.detach().numpy().tobytes() for w in network.parameters())
print("digest", hashlib.sha256(weights).hexdigest())
if rank == 0:
    target = os.environ.get("SUBMARINE_MODEL_DIR", ".")
    torch.save(network.state_dict(), os.path.join(target, "model.pt"))
dist.destroy_process_group()
