#!/usr/bin/python3
"""Learns two interleaved spirals: data in NumPy, a network, the training loop, a gradient check.

    PYTHONPATH=build/python /usr/bin/python3 bindings/python/examples/spiral.py
"""
import numpy as np

import wengert as wg
from wengert import nn, optim

# ---- Data: 400 points of two spirals, in NumPy. The tensor uses the array's memory. ----

rng = np.random.default_rng(1)
label = np.arange(400) % 2
turn = rng.uniform(0.5, 3.0, 400)
angle = turn * np.pi + label * np.pi
points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], 1) / 3
points = (points + rng.normal(0, 0.02, points.shape)).astype(np.float32)
x, y = wg.from_numpy(points), wg.tensor(label)


# ---- A network: attributes are its children, and name the parameters. ----

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(2, width)
        self.hidden = nn.Linear(width, width)
        self.down = nn.Linear(width, 2)

    def forward(self, x):
        return self.down(self.hidden(self.up(x).tanh()).tanh())


wg.manual_seed(1)
net = Net(32)
print("parameters: %d, among them %s" % (net.parameter_count(), net.named_parameters()[0][0]))

# ---- Training: loss, backward, step. ----

optimizer = optim.AdamW(net, weight_decay=0.01)
schedule = optim.Schedule("cosine", 0.02, total_steps=400, warmup_steps=20)
for step in range(400):
    loss = wg.cross_entropy(net(x), y)
    loss.backward()
    optimizer.clip(1.0)
    optimizer.step(schedule(step))
    if step % 100 == 0 or step == 399:
        print("step %3d  loss %.3f" % (step, loss.item()))

with wg.no_grad():
    right = (net(x).argmax(1) == y).float().mean().item()
print("right: %.1f %%" % (100 * right))

# ---- Is the gradient right? Central differences in f64 say so. ----

print(wg.gradcheck_module(net, wg.randn((3, 2), "f64")))
