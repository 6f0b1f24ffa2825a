"""Times scaled_dot_product_attention of PyTorch, forward and backward, over the lengths of `wengert
bench attention`, so that the two can be compared.

    python3 bench/torch_attention.py [THREADS [RUNS]]

Needs PyTorch 2.0 or newer. A window is a mask there, as PyTorch has no sliding window on processors.
Prints medians in ms.
"""
import statistics
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

HEADS, WIDTH, WINDOW = 4, 64, 128


def run(length, causal, window):
    q, k, v = (torch.randn(1, HEADS, length, WIDTH, requires_grad=True) for _ in range(3))
    cotangent = torch.randn(1, HEADS, length, WIDTH)
    mask = None
    if window:
        place = torch.arange(length)
        mask = (place[:, None] - place[None, :]).abs() <= window
    forward, backward = [], []
    for _ in range(runs + 1):
        start = time.perf_counter()
        y = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        middle = time.perf_counter()
        torch.autograd.grad(y, (q, k, v), cotangent)
        forward.append(middle - start)
        backward.append(time.perf_counter() - middle)
    print(f"seq {length:5d}  causal {int(causal)}  window {window:4d}  "
          f"forward {1e3 * statistics.median(forward[1:]):8.1f} ms  "
          f"backward {1e3 * statistics.median(backward[1:]):8.1f} ms", flush=True)


threads = int(sys.argv[1]) if len(sys.argv) > 1 else torch.get_num_threads()
runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
torch.set_num_threads(threads)
torch.manual_seed(0)
for seq in (512, 1024, 2048, 4096, 8192):
    run(seq, False, 0)
    run(seq, True, 0)
run(4096, False, WINDOW)
