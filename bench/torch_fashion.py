"""examples/fashion.c in PyTorch: the same networks, batches of 64, AdamW and schedule, on OMP_NUM_THREADS threads
(default 1).

    /usr/bin/python3 bench/torch_fashion.py cnn|vit FOLDER [EPOCHS [SECONDS]]

FOLDER has the four IDX files of Fashion-MNIST, not compressed. With SECONDS training ends after that time of the
clock: that times a step.
"""
import os
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 64


def read(folder, which):
    with open("%s/%s-images-idx3-ubyte" % (folder, which), "rb") as file:
        points = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with open("%s/%s-labels-idx1-ubyte" % (folder, which), "rb") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return torch.from_numpy(points.copy()), torch.from_numpy(labels.astype(np.int64))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.hidden, self.out, self.dropout = nn.Linear(32 * 49, 128), nn.Linear(128, 10), nn.Dropout(0.25)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.out(self.dropout(F.relu(self.hidden(x.flatten(1)))))


class ViT(nn.Module):
    def __init__(self, width=64, heads=4, layers=4):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, stride=4)
        self.positions = nn.Parameter(0.02 * torch.randn(49, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x).mean(1))


def main():
    kind, folder = sys.argv[1:3]
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    most = float(sys.argv[4]) if len(sys.argv) > 4 else float("inf")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(1)
    images, labels = read(folder, "train")
    net, peak = (ViT(), 0.001) if kind == "vit" else (CNN(), 0.002)
    optimizer = torch.optim.AdamW(net.parameters(), lr=peak, weight_decay=0)
    steps = -(-len(labels) // BATCH)
    begun, done = time.monotonic(), 0
    for epoch in range(epochs):
        order, total = torch.randperm(len(labels)), 0.0
        for at in range(0, len(labels), BATCH):
            if time.monotonic() - begun >= most:
                break
            rows = order[at:at + BATCH]
            for group in optimizer.param_groups:
                group["lr"] = peak * (1 - done / (epochs * steps))
            loss = F.cross_entropy(net(images[rows].float() / 127.5 - 1), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            done += 1
        print("epoch %d   loss %.4f   %.0f s" % (epoch + 1, total / steps, time.monotonic() - begun), flush=True)
    print("%.2f ms a step" % (1e3 * (time.monotonic() - begun) / done))
    net.eval()
    images, labels = read(folder, "t10k")
    with torch.no_grad():
        right = sum((net(images[at:at + BATCH].float() / 127.5 - 1).argmax(1) == labels[at:at + BATCH]).sum().item()
                    for at in range(0, len(labels), BATCH))
    print("right on new pictures: %.1f %%" % (100 * right / len(labels)))


main()
