"""A program that trains with NCCL if each rank has a GPU of its own, else with gloo."""

#: The ranks of a container share its devices. Prints backend, device and a digest of the model.
PROGRAM = """
import hashlib, os
import torch, torch.distributed as dist

world, devices = int(os.environ["WORLD_SIZE"]), torch.cuda.device_count()
backend = "nccl" if world <= devices else "gloo"
device = torch.device(f"cuda:{int(os.environ['LOCAL_RANK']) % devices}" if devices else "cpu")
dist.init_process_group(backend)
torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    model(torch.randn(32, 64, device=device)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
total = torch.ones(1, device=device)
dist.all_reduce(total)
weights = b"".join(one.detach().cpu().numpy().tobytes() for one in model.parameters())
print("backend", backend, device.type, int(total.item()), flush=True)
print("digest", hashlib.sha256(weights).hexdigest(), flush=True)
dist.destroy_process_group()
"""
