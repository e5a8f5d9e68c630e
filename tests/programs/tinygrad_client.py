#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the driver that nobody here wrote: tinygrad trains a small network on data made from a
fixed seed, on its CUDA backend with its own PTX. Prints every loss as an exact hexadecimal float,
then a checksum of the weights. tinygrad_test.py runs it; by hand:

    DEV=CUDA:PTX LD_LIBRARY_PATH=FOLDER_OF_LIBCUDA tinygrad_client.py [--steps N]

JIT=2 in the environment keeps tinygrad's own graphs off, JIT=1 uses them, JIT=0 also runs every
step from Python.
"""

import argparse
import random

from tinygrad import Context, Device, Tensor, TinyJit
from tinygrad.nn import Linear
from tinygrad.nn.optim import SGD
from tinygrad.nn.state import get_parameters

BATCH = 32
INPUTS = 8
HIDDEN = 24


class Network:
    def __init__(self):
        self.first = Linear(INPUTS, HIDDEN)
        self.middle = Linear(HIDDEN, HIDDEN)
        self.last = Linear(HIDDEN, 1)

    def __call__(self, inputs):
        return self.last(self.middle(self.first(inputs).relu()).tanh())


def batches(generator):
    """A simple function of eight inputs, a new batch every step."""
    while True:
        rows = [[generator.uniform(-1, 1) for _ in range(INPUTS)] for _ in range(BATCH)]
        yield rows, [[abs(row[0]) + row[1] - 0.5 * row[2]] for row in rows]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    if Device.DEFAULT != "CUDA":
        parser.error(f"tinygrad runs on {Device.DEFAULT}: set DEV=CUDA:PTX")

    Tensor.manual_seed(7)
    network = Network()
    optimizer = SGD(get_parameters(network), lr=0.02, momentum=0.9)

    @TinyJit
    def step(inputs, wanted):
        optimizer.zero_grad()
        loss = (network(inputs) - wanted).square().mean().backward()
        optimizer.step()
        return loss.realize()

    with Context(TRAINING=1):
        for number, (rows, values) in zip(range(steps), batches(random.Random(11))):
            loss = step(Tensor(rows).realize(), Tensor(values).realize())
            print(f"step {number} loss {loss.item().hex()}", flush=True)
    total = sum(parameter.abs().sum().item() for parameter in get_parameters(network))
    print(f"weights {total.hex()}")


if __name__ == "__main__":
    main()
