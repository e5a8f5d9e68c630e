#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the driver that nobody here wrote: tinygrad on its CUDA backend with its own PTX, on
data made from a fixed seed. It multiplies matrices, runs a recorded function whose shapes change
from call to call, and trains a small network. Prints sums, every loss and a checksum of the weights
as exact hexadecimal floats. tinygrad_test.py runs it; by hand:

    DEV=CUDA:PTX LD_LIBRARY_PATH=FOLDER_OF_LIBCUDA tinygrad_client.py [--steps N]

JIT=2 in the environment keeps tinygrad's own graphs off, JIT=1 uses them, JIT=0 also runs every
step from Python.
"""

import argparse
import random

from tinygrad import Context, Device, Tensor, TinyJit, Variable
from tinygrad.nn import Linear
from tinygrad.nn.optim import SGD
from tinygrad.nn.state import get_parameters

BATCH = 32
INPUTS = 8
HIDDEN = 24
LONGEST = 24


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


def matrix(generator, rows, columns):
    return Tensor(
        [[generator.uniform(-1, 1) for _ in range(columns)] for _ in range(rows)]
    ).realize()


def multiply(generator):
    for size in (8, 33, 64):
        left, right = matrix(generator, size, size), matrix(generator, size, size)
        product = (left @ right).realize()
        squares = (product * product).sum()
        print(f"product {size} {product.sum().item().hex()} {squares.item().hex()}", flush=True)


def changing_shapes(generator):
    """One recorded function for all lengths: only grids and arguments change between its runs."""
    values, weights = matrix(generator, 6, LONGEST), matrix(generator, LONGEST, 10)
    scores = matrix(generator, 10, 7)

    @TinyJit
    def read(values, weights, scores):
        hidden = (values @ weights).relu().contiguous()
        shares = (hidden @ scores).softmax().contiguous()
        return (shares * hidden.sum()).sum(axis=0).contiguous().sum().realize()

    for start in (1, 2, 3):
        for number in range(start, LONGEST, 4):
            length = Variable("length", 1, LONGEST).bind(number)
            total = read(values[:, :length], weights[:length, :], scores)
            print(f"length {number} {total.item().hex()}", flush=True)


def train(steps):
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    if Device.DEFAULT != "CUDA":
        parser.error(f"tinygrad runs on {Device.DEFAULT}: set DEV=CUDA:PTX")
    generator = random.Random(5)
    multiply(generator)
    changing_shapes(generator)
    train(steps)


if __name__ == "__main__":
    main()
