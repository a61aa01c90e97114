"""Hugging Face transformers: the `Trainer` with a small model that is made from a configuration.

`submarine run transformers_train.py --file digits.npz --worker 2 --wait`
"""

# %%
import hashlib
import os

import numpy as np
import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification
from transformers.trainer_utils import get_last_checkpoint

digits = np.load("digits.npz")


def rows(part):
    images = torch.from_numpy(digits[f"x_{part}"]).reshape(-1, 1, 8, 8)
    labels = torch.from_numpy(digits[f"y_{part}"])
    return [
        {"pixel_values": image, "labels": label}
        for image, label in zip(images, labels, strict=True)
    ]


# %%
torch.manual_seed(1)
config = ViTConfig(
    image_size=8,
    patch_size=2,
    num_channels=1,
    num_labels=10,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
)
model = ViTForImageClassification(config)

# %%
gpu = torch.cuda.is_available()
# With a backend, a single process would ask for a group that it lacks.
several = "RANK" in os.environ
arguments = TrainingArguments(
    output_dir="out",
    num_train_epochs=8,
    per_device_train_batch_size=16,
    learning_rate=0.003,
    logging_steps=20,
    save_strategy="epoch",
    save_total_limit=2,
    report_to=[],
    disable_tqdm=True,
    use_cpu=not gpu,
    ddp_backend=("nccl" if gpu else "gloo") if several else None,
)
trainer = Trainer(model, arguments, train_dataset=rows("train"), eval_dataset=rows("test"))
# A job that is started again continues.
trainer.train(resume_from_checkpoint=get_last_checkpoint("out") is not None)

# %%
print(f"rank {arguments.process_index} of {arguments.world_size}")
guessed = trainer.predict(rows("test")).predictions.argmax(1)
print(f"accuracy {(guessed == digits['y_test']).mean():.4f}")
weights = b"".join(w.detach().cpu().numpy().tobytes() for w in model.parameters())
print("digest", hashlib.sha256(weights).hexdigest())
trainer.save_model(os.environ.get("SUBMARINE_MODEL_DIR", "model"))
