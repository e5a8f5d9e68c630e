# SPDX-License-Identifier: Apache-2.0
"""A Python program whose blocking calls are known: the lines marked SITE. The driver by ctypes, which
releases the GIL, and by PyDLL, which keeps it; in the last case by cuda-bindings.

    python_host.py calls | many CALLS | daemon | bindings
"""

import ctypes
import os
import sys
import threading


class Driver:
    """The driver's functions by ctypes; a status other than 0 ends the program."""

    def __init__(self, load):
        self._library = load("libcuda.so.1")

    def __getattr__(self, name):
        # Not the attribute, which is one object for all threads: ctypes does not hold an errcheck
        # that another thread replaces.
        function = self._library[name]

        def checked(status, _, arguments):
            if status != 0:
                sys.exit(f"{name}{arguments}: {status}")
            return status

        function.errcheck = checked
        return function


def start(driver):
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    return context


driver = Driver(ctypes.CDLL)
# Found once: what lies between a call and its line is then native code alone.
synchronize, query = driver.cuCtxSynchronize, driver.cuStreamQuery
wait = driver.cuStreamSynchronize
allocate, free = driver.cuMemAlloc_v2, driver.cuMemFree_v2
read, write = driver.cuMemcpyDtoH_v2, driver.cuMemcpyHtoD_v2


class Solver:
    def __init__(self):
        self.memory = ctypes.c_uint64()
        allocate(ctypes.byref(self.memory), ctypes.c_size_t(1024))
        self.residual = ctypes.c_float()

    def converged(self):
        # The same native stack as below: only the line tells them apart.
        read(ctypes.byref(self.residual), self.memory, ctypes.c_size_t(4))  # SITE python_first

        read(ctypes.byref(self.residual), self.memory, ctypes.c_size_t(4))  # SITE python_second

    def close(self):
        free(self.memory)  # SITE python_free


def steps(count):
    for number in range(count):
        synchronize()  # SITE python_generator
        yield number


async def step():
    synchronize()  # SITE python_coroutine


def run_coroutine():
    try:
        step().send(None)
    except StopIteration:
        return


def many_lines():
    return (
        len("a name"),
        wait(  # SITE python_spread
            None,
        ),
    )


def in_thread(context, calls):
    driver.cuCtxSetCurrent(context)
    value = ctypes.c_int()
    memory = ctypes.c_uint64()
    allocate(ctypes.byref(memory), ctypes.c_size_t(64))
    for _ in range(calls):
        write(memory, ctypes.byref(value), ctypes.c_size_t(4))  # SITE python_thread


def compiled_cells():
    """Code objects that come and go, as a notebook's cells do: often at one address."""
    for number in range(20):
        # The blank lines put each call on a line of its own.
        cell = compile("\n" * number + "query(None)\n", f"<cell {number}>", "exec")
        exec(cell, {"query": query})
        del cell


def naïve_wait():
    synchronize()  # SITE python_unicode


def calls(context):
    solver = Solver()
    for _ in range(12):
        solver.converged()
    solver.close()
    assert list(steps(7)) == list(range(7))
    for _ in range(6):
        run_coroutine()
    waiting = lambda: synchronize()  # noqa: E731  SITE python_lambda
    for _ in range(5):
        waiting()
    [query(None) for _ in range(9)]  # SITE python_comprehension
    many_lines()
    holding = ctypes.PyDLL("libcuda.so.1").cuCtxSynchronize
    for _ in range(4):
        holding()  # SITE python_holding
    threads = [threading.Thread(target=in_thread, args=(context, 15)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    naïve_wait()
    compiled_cells()


def many(count):
    for _ in range(count):
        query(None)  # SITE python_many


def daemon(context):
    """The interpreter ends while daemon threads are inside calls."""
    for _ in range(8):
        threading.Thread(target=in_thread, args=(context, 10**9), daemon=True).start()
    in_thread(context, 50)


def bindings():
    """The same by NVIDIA's package, found where this Python has its packages."""
    from cuda.bindings import driver as nvidia

    assert nvidia.cuInit(0)[0] == 0
    status, context = nvidia.cuDevicePrimaryCtxRetain(0)
    assert status == 0
    assert nvidia.cuCtxSetCurrent(context)[0] == 0

    def wait_for_all():
        nvidia.cuCtxSynchronize()  # SITE bindings_wait

    def poll():
        return nvidia.cuStreamQuery(0)  # SITE bindings_poll

    for _ in range(13):
        wait_for_all()
    assert all(poll()[0] == 0 for _ in range(8))


def main():
    what = sys.argv[1]
    if what == "bindings":
        bindings()
        return
    context = start(driver)
    if what == "calls":
        calls(context)
    elif what == "many":
        many(int(sys.argv[2]))
    elif what == "daemon":
        daemon(context)
    else:
        sys.exit(f"{what}: expected calls, many, daemon or bindings")
    sys.stdout.flush()


main()
