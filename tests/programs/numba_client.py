#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the driver that nobody here wrote: Numba, whose kernels NVVM compiles and the driver
links, launched with cuLaunchKernelEx on its own streams and on the default one. Holds every result
against NumPy and prints it, floats as exact hexadecimal numbers. numba_test.py runs it; by hand:

    LD_LIBRARY_PATH=FOLDER_OF_LIBCUDA numba_client.py [--rounds N]
"""

import argparse
import math

import numpy
from numba import cuda, float32, int32
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

SIZE = 192
BLOCK = 64
BLOCKS = SIZE // BLOCK


@cuda.jit
def affine(values, factor, offset):
    i = cuda.grid(1)
    if i < values.size:
        values[i] = values[i] * factor + offset


@cuda.jit
def mix(target, source, shift):
    i = cuda.grid(1)
    if i < target.size:
        target[i] = target[i] * int32(3) + source[(i + shift) % source.size]


@cuda.jit
def block_sums(values, sums, largest):
    """Shared memory, barriers, and an atomic for all blocks."""
    part = cuda.shared.array(BLOCK, int32)
    i, thread = cuda.grid(1), cuda.threadIdx.x
    part[thread] = values[i]
    cuda.syncthreads()
    step = BLOCK // 2
    while step > 0:
        if thread < step:
            part[thread] += part[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        sums[cuda.blockIdx.x] = part[0]
        cuda.atomic.max(largest, 0, part[0])


@cuda.jit
def waves(values, time):
    i = cuda.grid(1)
    if i < values.size:
        x = float32(i) * float32(0.05)
        values[i] += math.exp(-x) * math.sin(x * time) + math.sqrt(x)


@cuda.jit
def transpose(target, source):
    row, column = cuda.grid(2)
    if row < source.shape[0] and column < source.shape[1]:
        target[column, row] += source[row, column]


@cuda.jit
def throw(states, sums, count):
    i = cuda.grid(1)
    for _ in range(count):
        sums[i] += xoroshiro128p_uniform_float32(states, i)


@cuda.reduce
def add(left, right):
    return left + right


def show(name, *values):
    is_real = (float, numpy.floating)
    print(name, *(float(v).hex() if isinstance(v, is_real) else v for v in values), flush=True)


def same(name, found, wanted):
    close = numpy.array_equal(found, wanted)
    if found.dtype.kind == "f":
        close = numpy.allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert close, f"{name}: {found} is not {wanted}"


def one_stream(rounds):
    """The same sequence again and again, with other values and in the end a longer one."""
    stream = cuda.stream()
    host = numpy.arange(SIZE, dtype=numpy.int32)
    values = cuda.to_device(host, stream=stream)
    for number in range(rounds):
        for step in range(6 + (number == rounds - 1)):
            affine[BLOCKS, BLOCK, stream](values, int32(3 + 2 * step), int32(number))
            host = host * numpy.int32(3 + 2 * step) + numpy.int32(number)
        stream.synchronize()
    found = values.copy_to_host(stream=stream)
    stream.synchronize()
    same("one stream", found, host)
    show("one stream", *found[::37])


def two_streams(rounds):
    """Each reads what the other wrote, held back by events."""
    streams = [cuda.stream(), cuda.stream()]
    done = [cuda.event(timing=False), cuda.event(timing=False)]
    hosts = [numpy.arange(SIZE, dtype=numpy.int32), numpy.ones(SIZE, dtype=numpy.int32)]
    arrays = [cuda.to_device(host) for host in hosts]
    for number in range(rounds):
        for turn in (0, 1):
            if number + turn > 0:
                done[1 - turn].wait(streams[turn])
            for step in range(5):
                mix[BLOCKS, BLOCK, streams[turn]](arrays[turn], arrays[1 - turn], step + number)
                shifted = numpy.roll(hosts[1 - turn], -(step + number))
                hosts[turn] = hosts[turn] * numpy.int32(3) + shifted
            done[turn].record(streams[turn])
    cuda.synchronize()
    for name, array, host in zip(("first", "second"), arrays, hosts):
        found = array.copy_to_host()
        same(name, found, host)
        show(name, *found[::41])


def default_stream(rounds):
    """Copies of pageable memory between the launches, and a reduction of Numba's own."""
    host = (numpy.arange(SIZE, dtype=numpy.int32) * 7) % 101
    for number in range(rounds):
        values = cuda.to_device(host + numpy.int32(number))
        sums = cuda.device_array(BLOCKS, numpy.int32)
        largest = cuda.to_device(numpy.zeros(1, numpy.int32))
        for _ in range(4):
            block_sums[BLOCKS, BLOCK](values, sums, largest)
        wanted = (host + number).reshape(BLOCKS, BLOCK).sum(axis=1, dtype=numpy.int32)
        same("sums", sums.copy_to_host(), wanted)
        same("largest", largest.copy_to_host(), wanted.max(keepdims=True))
    show("sums", *wanted, add(values))


def pinned_memory(rounds):
    """Copies that the host does not wait for, and arrays that go while kernels may use them."""
    stream = cuda.stream()
    target = cuda.pinned_array(SIZE, dtype=numpy.float32)
    wanted = numpy.zeros(SIZE, dtype=numpy.float32)
    x = numpy.arange(SIZE, dtype=numpy.float32) * numpy.float32(0.05)
    values = cuda.to_device(wanted, stream=stream)
    for number in range(rounds):
        for step in range(5):
            time = numpy.float32(step + number)
            waves[BLOCKS, BLOCK, stream](values, time)
            wanted = wanted + numpy.exp(-x) * numpy.sin(x * time) + numpy.sqrt(x)
        scratch = cuda.device_array(SIZE, numpy.float32, stream=stream)
        affine[BLOCKS, BLOCK, stream](scratch, float32(0), float32(1))
        del scratch
        values.copy_to_host(target, stream=stream)
    stream.synchronize()
    same("waves", target, wanted)
    show("waves", *target[::29])


def two_dimensions(rounds):
    source = numpy.arange(12 * 20, dtype=numpy.float64).reshape(12, 20)
    strided = cuda.to_device(source)[:, ::2]
    target = cuda.to_device(numpy.zeros((10, 12)))
    for _ in range(rounds):
        transpose[(3, 3), (4, 4)](target, strided)
    found = target.copy_to_host()
    same("transposed", found, source[:, ::2].T * rounds)
    show("transposed", found.sum(), found[3, 5])


def random_numbers(rounds):
    stream = cuda.stream()
    states = create_xoroshiro128p_states(SIZE, seed=5, stream=stream)
    sums = cuda.to_device(numpy.zeros(SIZE, dtype=numpy.float32), stream=stream)
    for number in range(rounds):
        throw[BLOCKS, BLOCK, stream](states, sums, 1 + number % 3)
    found = sums.copy_to_host(stream=stream)
    stream.synchronize()
    draws = sum(1 + number % 3 for number in range(rounds))
    assert abs(found.mean() / draws - 0.5) < 0.05, found.mean()
    show("random", *found[::53])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=8)
    rounds = parser.parse_args().rounds
    for workload in (one_stream, two_streams, default_stream, pinned_memory):
        workload(rounds)
    two_dimensions(rounds)
    random_numbers(rounds)


if __name__ == "__main__":
    main()
