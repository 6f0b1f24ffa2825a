"""Two layers of width 32 in PyTorch, as `wengert bench train mlp' has them.

    /usr/bin/python3 bench/torch_mlp.py [BATCH [STEPS]]
"""
import resource
import sys
import time

import torch

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 32
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, foreach=True)
features, labels = torch.rand(batch, 32), torch.randint(0, 10, (batch,))
seconds = []
for step in range(steps + 2):
    start = time.perf_counter()
    loss = torch.nn.functional.cross_entropy(model(features), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step >= 2:
        seconds.append(time.perf_counter() - start)
seconds.sort()
median = seconds[len(seconds) // 2]
print(
    f"peer=torch-{torch.__version__} ms_per_step={1e3 * median:.4f} loss={loss.item():.4f}"
    f" rss_mb={resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}"
    f" min_ms={1e3 * seconds[0]:.4f} max_ms={1e3 * seconds[-1]:.4f}"
)
