#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the driver that nobody here wrote: simulations and other loops in taichi, which makes
its PTX with LLVM and launches it on the legacy stream. Prints what each workload came to, floats as
exact hexadecimal numbers. taichi_test.py runs it; by hand:

    LD_LIBRARY_PATH=FOLDER_OF_LIBCUDA taichi_client.py [--arch cuda|cpu] [--steps N]
"""

import argparse

import numpy
import taichi as ti

SIDE = 32
SPRINGS = 48


def show(name, *values):
    print(name, *(v.hex() if isinstance(v, float) else v for v in values), flush=True)


def game_of_life(steps):
    """Three loops a step, so three launches; integers and an atomic sum."""
    cells = ti.field(ti.i32, (SIDE, SIDE))
    following = ti.field(ti.i32, (SIDE, SIDE))
    births = ti.field(ti.i32, ())

    @ti.kernel
    def start():
        for i, j in cells:
            cells[i, j] = (i * 7 + j * 13 + i * j) % 3 // 2

    @ti.kernel
    def step():
        for i, j in cells:
            around = 0
            for k, l in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                if ti.static(k != 0 or l != 0):
                    around += cells[(i + k) % SIDE, (j + l) % SIDE]
            following[i, j] = int(around == 3 or (around == 2 and cells[i, j] == 1))
        for i, j in cells:
            births[None] += int(following[i, j] > cells[i, j])
        for i, j in cells:
            cells[i, j] = following[i, j]

    start()
    for number in range(steps):
        step()
        if number % 10 == 9:
            show("life", number, births[None])
    show("life", cells.to_numpy().tobytes().hex()[::8])


def mass_spring(steps):
    """A hanging chain, two loops a step whose argument changes every time."""
    places = ti.Vector.field(2, ti.f32, SPRINGS)
    speeds = ti.Vector.field(2, ti.f32, SPRINGS)
    lowest = ti.field(ti.f32, ())

    @ti.kernel
    def start():
        for i in places:
            places[i] = ti.Vector([0.1 * i, 0.0])
            speeds[i] = ti.Vector([0.0, 0.0])

    @ti.kernel
    def step(seconds: ti.f32):
        for i in places:
            pull = ti.Vector([0.0, -9.8])
            for side in ti.static((-1, 1)):
                if 0 <= i + side < SPRINGS:
                    apart = places[i + side] - places[i]
                    length = apart.norm() + 1e-6
                    pull += apart / length * (length - 0.1) * 400.0
            speeds[i] = (speeds[i] + pull * seconds) * ti.exp(-0.5 * seconds)
        for i in places:
            if i != 0 and i != SPRINGS - 1:
                places[i] += speeds[i] * seconds
            ti.atomic_min(lowest[None], places[i].y)

    start()
    for number in range(steps):
        step(0.004 + 0.001 * (number % 3))
    show("chain", lowest[None])
    show("chain", *(float(v) for v in places.to_numpy()[::7].flatten()))


def numbers_from_kernels(steps):
    """Results, arrays of the host and a launch that reads what the last one wrote."""

    @ti.kernel
    def scale(values: ti.types.ndarray(dtype=ti.f32, ndim=1), factor: ti.f32) -> ti.f32:
        total = 0.0
        for i in range(values.shape[0]):
            values[i] = (values[i] * factor + i) % 97.0
            total += values[i]
        return total

    host = numpy.arange(40, dtype=numpy.float32)
    device = ti.ndarray(ti.f32, 40)
    device.from_numpy(host)
    for number in range(steps // 5):
        show("sum", scale(host, 1.0 + number), scale(device, 1.0 + number))
    show("array", float(device.to_numpy().sum()), float(host[7]))


def sparse_cells(steps):
    """Cells that come into being when written: taichi's device code allocates and locks."""
    trail = ti.field(ti.i32)
    blocks = ti.root.pointer(ti.ij, (8, 8))
    blocks.dense(ti.ij, (4, 4)).place(trail)
    found = ti.field(ti.i32, 2)

    @ti.kernel
    def walk(number: ti.i32):
        for i in range(16):
            trail[(i * 5 + number) % SIDE, (i * i + number * 2) % SIDE] += 1 + i

    @ti.kernel
    def count():
        for i, j in trail:
            found[0] += 1
            found[1] += trail[i, j] * (i + 1)

    for number in range(steps // 4):
        walk(number)
    count()
    show("sparse", found[0], found[1])


def shared_memory(steps):
    """Blocks that meet in barriers, and warps that shuffle; for a GPU alone."""
    values = ti.field(ti.i32, 256)
    sums = ti.field(ti.i32, 8)

    @ti.kernel
    def turn(shift: ti.i32):
        ti.loop_config(block_dim=64)
        for i in range(256):
            block = ti.simt.block.SharedArray((64,), ti.i32)
            block[i % 64] = values[i] + i + shift
            ti.simt.block.sync()
            values[i] = block[(i + shift) % 64] % 1000
        ti.loop_config(block_dim=64)
        for i in range(256):
            sum = values[i]
            for bit in ti.static((16, 8, 4, 2, 1)):
                sum += ti.simt.warp.shfl_xor_i32(ti.u32(0xFFFFFFFF), sum, bit)
            if i % 32 == 0:
                sums[i // 32] += sum

    for number in range(steps // 2):
        turn(number)
    show("shared", *sums.to_numpy().tolist())


def random_numbers(_steps):
    """Every thread has a generator of its own, so the numbers are the same on one kind of device."""
    bins = ti.field(ti.i32, 8)

    @ti.kernel
    def throw():
        for _ in range(500):
            ti.atomic_add(bins[int(ti.random() * 8)], 1)

    throw()
    throw()
    show("random", *bins.to_numpy().tolist())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    on_gpu = options.arch == "cuda"
    # Nothing is kept outside this process, and a backend that fails is not replaced by another.
    ti.init(
        arch=ti.cuda if on_gpu else ti.cpu,
        offline_cache=False,
        log_level=ti.ERROR,
        random_seed=3,
        fast_math=False,
        device_memory_GB=0.25,
    )
    if on_gpu and ti.cfg.arch != ti.cuda:
        parser.error(f"taichi runs on {ti.cfg.arch}: is libcuda.so in LD_LIBRARY_PATH?")
    for workload in (game_of_life, mass_spring, numbers_from_kernels, sparse_cells):
        workload(options.steps)
    if on_gpu:
        shared_memory(options.steps)
        random_numbers(options.steps)


if __name__ == "__main__":
    main()
