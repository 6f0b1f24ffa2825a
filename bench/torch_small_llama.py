"""The decoder of docs/small-corpora.md in PyTorch: the same tokens, sizes, optimizer and schedule, so
that its losses and its time can be compared with `wengert pretrain llama`.

    python3 bench/torch_small_llama.py TOKENS.h5 TOTAL [STEPS [THREADS]]

TOKENS.h5 is what `wengert pretrain --tokens` keeps; TOTAL is the number of steps that the learning
rate is made for, STEPS how many of them are run (all). Prints the mean loss of each 50 steps, and at
the end the median time of a step, without the first ten.
"""
import math
import random
import sys
import time

import h5py
import numpy
import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY = 6, 192, 3, 512, 4096
BATCH, LENGTH = 16, 128
PEAK, LONGEST_WARMUP, DECAY, CLIP = 0.006, 60, 0.05, 1.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.Parameter(torch.ones(WIDTH))
        self.net_norm = nn.Parameter(torch.ones(WIDTH))
        self.query, self.key, self.value, self.output = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cosine, sine, mask):
        b, t, _ = x.shape
        y = norm(x, self.attention_norm)
        query, key, value = (
            layer(y).view(b, t, HEADS, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
            y = scores.masked_fill(mask, float("-inf")).softmax(-1) @ value
        x = x + self.output(y.transpose(1, 2).reshape(b, t, WIDTH))
        y = norm(x, self.net_norm)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x, cosine, sine):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(WIDTH))
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                adds = name.endswith(("output.weight", "down.weight"))  # to the residual stream
                nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * LAYERS) if adds else 0.02)
        half = WIDTH // HEADS // 2
        angles = torch.outer(torch.arange(LENGTH), 1e4 ** (-torch.arange(half) / half))
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril() == 0)

    def forward(self, ids, labels):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine, self.mask)
        logits = norm(x, self.norm) @ self.embedding.weight.T
        return F.cross_entropy(logits.view(-1, VOCABULARY), labels.reshape(-1))


class Muon:
    """Muon (Jordan et al. 2024) scaled to AdamW's rate (Liu et al. 2025). Matrices of one shape are
    taken together."""

    def __init__(self, matrices):
        shapes = {}
        for matrix in matrices:
            shapes.setdefault(tuple(matrix.shape), []).append(matrix)
        self.groups = list(shapes.values())
        self.momenta = [torch.zeros(len(g), *g[0].shape) for g in self.groups]

    @torch.no_grad()
    def step(self, rate):
        for group, momentum in zip(self.groups, self.momenta):
            gradient = torch.stack([matrix.grad for matrix in group])
            momentum.lerp_(gradient, 0.05)
            x = torch.lerp(gradient, momentum, 0.95)
            turned = x.shape[1] > x.shape[2]
            x = x.transpose(1, 2) if turned else x
            x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
            for _ in range(5):
                a = x @ x.transpose(1, 2)
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            x = x.transpose(1, 2) if turned else x
            scale = 0.2 * math.sqrt(max(x.shape[1:]))
            for matrix, update in zip(group, x):
                matrix.mul_(1 - rate * DECAY).sub_(update, alpha=rate * scale)


def windows(tokens):
    """Windows of each epoch from a random offset on, shuffled."""
    while True:
        starts = list(range(random.randrange(LENGTH), len(tokens) - LENGTH, LENGTH))
        random.shuffle(starts)
        yield from starts


def main():
    total = int(sys.argv[2])
    warmup = min(LONGEST_WARMUP, total // 10)
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else total
    torch.set_num_threads(int(sys.argv[4]) if len(sys.argv) > 4 else 2)
    torch.manual_seed(0)
    random.seed(0)
    with h5py.File(sys.argv[1]) as file:
        tokens = torch.from_numpy(file["tokens"][:].astype(numpy.int64))
    model = Llama()
    matrices = [p for block in model.blocks for p in block.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    adam = torch.optim.AdamW(
        [
            {"params": [model.embedding.weight], "weight_decay": DECAY},
            {"params": vectors, "weight_decay": 0},
        ],
        betas=(0.9, 0.95),
        foreach=True,
    )
    muon = Muon(matrices)
    starts, losses, seconds = windows(tokens), [], []
    for step in range(1, steps + 1):
        begin = time.perf_counter()
        rate = PEAK * min(step / warmup, (total - step + 1) / (total - warmup + 1))
        for group in adam.param_groups:
            group["lr"] = rate
        batch = torch.stack([tokens[s : s + LENGTH + 1] for s in (next(starts) for _ in range(BATCH))])
        loss = model(batch[:, :-1], batch[:, 1:])
        for parameter in model.parameters():
            parameter.grad = None
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        muon.step(rate)
        adam.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
        if step % 50 == 0:
            print(f"steps {step - 49}-{step}  loss {sum(losses[-50:]) / 50:.4f}", flush=True)
    times = sorted(seconds[10:])
    print(f"torch {torch.__version__}: {1e3 * times[len(times) // 2]:.1f} ms a step")


main()
