"""What the programs for the peers share: the command line, and what a worker process says of itself."""

import asyncio
import json
import os
import random
import resource
import sys
import time

ARGS = {"n": 1}
IDLE = 2.0  # seconds without a job after which a worker takes it that none is left


class Count:
    """Jobs that were handled, and when the first and the last of them."""

    def __init__(self):
        self.jobs = 0
        self.first = self.last = None

    def one(self, at=None):
        self.last = time.time()
        if self.first is None:
            self.first = self.last
        self.jobs += 1

    async def until_done(self):
        started = time.time()
        while True:
            await asyncio.sleep(0.1)
            if time.time() - (self.last or started + 30) > IDLE:
                return

    def tell(self):
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({
            "jobs": self.jobs, "first": self.first, "last": self.last,
            "cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024,
        }))


class Lags:
    """How long after its call each job began, of a worker that stays."""

    def __init__(self, jobs):
        self.jobs, self.found = jobs, []

    def one(self, at=None):
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if not self.found:
            print("first", flush=True)
        self.found.append((now - at) / 1e6)
        if len(self.found) > self.jobs:
            print(json.dumps(self.found[1:]), flush=True)
            os._exit(0)

    async def until_done(self):
        await asyncio.Event().wait()


def main(setup, insert, caller, work):
    """<program> <url> setup | insert N | insert-one SECONDS | work | serve N | call N"""
    url, verb = sys.argv[1], sys.argv[2]
    if verb == "setup":
        asyncio.run(setup(url))
    elif verb == "insert":
        began = time.time()
        asyncio.run(insert(url, int(sys.argv[3])))
        print(json.dumps({"seconds": time.time() - began}))
    elif verb == "insert-one":
        print(json.dumps({"per_second": asyncio.run(repeat(float(sys.argv[3]), caller(url)))}))
    elif verb == "work":
        count = Count()
        asyncio.run(work(url, count))
        count.tell()
    elif verb == "serve":
        asyncio.run(work(url, Lags(int(sys.argv[3])), stays=True))
    elif verb == "call":
        asyncio.run(pace(int(sys.argv[3]), caller(url)))
    else:
        sys.exit(f"unknown: {verb}")


async def repeat(seconds, calling):
    """Calls one after the other for so long; how many in a second."""
    async with calling as call:
        began, done = time.time(), 0
        while time.time() - began < seconds:
            await call(ARGS)
            done += 1
        return done / (time.time() - began)


async def pace(jobs, calling):
    """Makes `jobs` calls, each after the worker has gone to sleep again, with the time of the call."""
    async with calling as call:
        for n in range(jobs):
            await asyncio.sleep(random.uniform(0.06, 0.14))
            await call({"n": n, "at": time.clock_gettime_ns(time.CLOCK_MONOTONIC)})
