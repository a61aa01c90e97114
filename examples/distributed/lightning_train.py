"""Lightning: the default `Trainer()` trains one model on all workers and keeps its checkpoints.

`submarine run lightning_train.py --file digits.npz --worker 2 --wait`
"""

# %%
import hashlib
import os

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
        )

    def training_step(self, batch, number):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.net(images), labels)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, number):
        images, labels = batch
        correct = (self.net(images).argmax(1) == labels).float().mean()
        self.log("val_accuracy", correct, prog_bar=True, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


# %%
digits = np.load("digits.npz")
train, test = (
    TensorDataset(torch.from_numpy(digits[f"x_{part}"]), torch.from_numpy(digits[f"y_{part}"]))
    for part in ("train", "test")
)

# %%
lightning.seed_everything(1)
model = Digits()
trainer = lightning.Trainer(max_epochs=6, callbacks=[ModelCheckpoint(save_last=True)])
trainer.fit(
    model, DataLoader(train, batch_size=32, shuffle=True), DataLoader(test, 32), ckpt_path="last"
)

# %%
print(f"rank {trainer.global_rank} of {trainer.world_size}")
with torch.no_grad():
    guessed = model.net(torch.from_numpy(digits["x_test"])).argmax(1).numpy()
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
weights = b"".join(w.detach().numpy().tobytes() for w in model.parameters())
print("digest", hashlib.sha256(weights).hexdigest())
if trainer.is_global_zero:
    folder = os.environ.get("SUBMARINE_MODEL_DIR", ".")
    torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
