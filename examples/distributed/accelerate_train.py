"""Hugging Face Accelerate: a loop of PyTorch on several workers, with the state saved by all.

`submarine run accelerate_train.py --file digits.npz --worker 2 --wait`
"""

# %%
import hashlib
import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader, TensorDataset

gpu = torch.cuda.is_available()
handlers = []
if "RANK" in os.environ:  # With a backend, a single process would ask for a group that it lacks.
    # On CPUs Accelerate prefers MPI, where PyTorch was built with it.
    backend = "nccl" if gpu else "gloo"
    handlers.append(InitProcessGroupKwargs(backend, timeout=timedelta(minutes=5)))
accelerator = Accelerator(cpu=not gpu, kwargs_handlers=handlers)
print(f"rank {accelerator.process_index} of {accelerator.num_processes}")

# %%
digits = np.load("digits.npz")
data = TensorDataset(torch.from_numpy(digits["x_train"]), torch.from_numpy(digits["y_train"]))
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
model, optimizer, loader = accelerator.prepare(
    model,
    torch.optim.Adam(model.parameters(), lr=0.01),
    DataLoader(data, batch_size=32, shuffle=True),
)

# %%
folder = Path(os.environ.get("SUBMARINE_CHECKPOINT_DIR", "checkpoints"))
saved = sorted(folder.glob("step_*"), key=lambda path: int(path.name[5:]))
first = 0
if saved:
    accelerator.load_state(saved[-1])
    first = int(saved[-1].name[5:])

for epoch in range(first, 6):
    loader.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    accelerator.save_state(folder / f"step_{epoch + 1}")

# %%
network = accelerator.unwrap_model(model).cpu()
with torch.no_grad():
    guessed = network(torch.from_numpy(digits["x_test"])).argmax(1).numpy()
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
weights = b"".join(w.detach().numpy().tobytes() for w in network.parameters())
print("digest", hashlib.sha256(weights).hexdigest())
if accelerator.is_main_process:
    folder = os.environ.get("SUBMARINE_MODEL_DIR", ".")
    torch.save(network.state_dict(), os.path.join(folder, "model.pt"))
accelerator.end_training()
