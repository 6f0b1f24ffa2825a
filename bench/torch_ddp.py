"""DistributedDataParallel with gloo on one and on two processes of one thread: the same sizes as `sh
bench/ranks.sh`, which runs this.

    python3 bench/torch_ddp.py bert-mini|gpt2-124m BATCH SEQUENCE STEPS VOCABULARY

A step has two batches of random tokens, which the processes share out. Prints the median of the steps by
the clock, and the processor's time of a process.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

SIZES = {"bert-mini": (4, 256, 4, False), "gpt2-124m": (12, 768, 12, True)}


class Transformer(nn.Module):
    """An encoder, or (causal) a decoder, whose output layer shares the embedding's weights."""

    def __init__(self, layers, width, heads, causal, vocabulary, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, F.gelu, batch_first=True, norm_first=causal
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width))
        self.causal = causal

    def forward(self, ids):
        length = ids.shape[1]
        x = self.tokens(ids) + self.positions(torch.arange(length))
        mask = torch.full((length, length), float("-inf")).triu(1) if self.causal else None
        x = self.layers(x, mask)
        if not self.causal:  # the head runs at 15 % of the positions
            x = x[:, : (15 * length + 50) // 100]
        return x @ self.tokens.weight.t()


def train(rank, ranks, model, batch, sequence, steps, vocabulary, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
    distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = DistributedDataParallel(Transformer(*SIZES[model], vocabulary, sequence))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, foreach=True)
    ids = torch.randint(1, vocabulary, (batch, sequence))
    clock, processor = [], []
    for step in range(steps + 2):
        distributed.barrier()
        begun, used = time.perf_counter(), time.process_time()
        for part in range(2 // ranks):
            def run():
                logits = net(ids)
                labels = ids[:, : logits.shape[1]].reshape(-1)
                (F.cross_entropy(logits.flatten(0, 1), labels) * ranks / 2).backward()
            if part + 1 < 2 // ranks:
                with net.no_sync():
                    run()
            else:
                run()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= 2:
            clock.append(time.perf_counter() - begun)
            processor.append(time.process_time() - used)
    if rank == 0:
        results.put((statistics.median(clock), statistics.median(processor)))
    distributed.destroy_process_group()


def main():
    model, (batch, sequence, steps, vocabulary) = sys.argv[1], map(int, sys.argv[2:6])
    tokens, found = 2 * batch * sequence, []
    for ranks in 1, 2:
        results = multiprocessing.get_context("spawn").SimpleQueue()
        of = (ranks, model, batch, sequence, steps, vocabulary, results)
        multiprocessing.spawn(train, of, ranks)
        clock, processor = results.get()
        found.append((clock, processor))
        print(
            f"PyTorch  {ranks} rank{'s' if ranks > 1 else ' '}  step {1e3 * clock:8.1f} ms by the clock, "
            f"{1e3 * processor:8.1f} ms of the processor a rank: {tokens / clock:7.0f}, "
            f"{tokens / processor:7.0f} tokens/s"
        )
    one, two = found
    print(
        f"PyTorch  2 ranks have {one[0] / two[0]:.2f} times the tokens/s of 1 by the clock, "
        f"{one[1] / two[1]:.2f} times by the processor"
    )


if __name__ == "__main__":
    main()
