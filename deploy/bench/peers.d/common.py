"""What the programs for the peers share: the command line, and what a worker process says of itself."""

import asyncio
import json
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

    def one(self):
        self.last = time.time()
        if self.first is None:
            self.first = self.last
        self.jobs += 1

    async def until_idle(self):
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


def main(setup, insert, insert_one, work):
    """<program> <url> setup | insert N | insert-one SECONDS | work"""
    url, verb = sys.argv[1], sys.argv[2]
    if verb == "setup":
        asyncio.run(setup(url))
    elif verb == "insert":
        began = time.time()
        asyncio.run(insert(url, int(sys.argv[3])))
        print(json.dumps({"seconds": time.time() - began}))
    elif verb == "insert-one":
        print(json.dumps({"per_second": asyncio.run(insert_one(url, float(sys.argv[3])))}))
    elif verb == "work":
        count = Count()
        asyncio.run(work(url, count))
        count.tell()
    else:
        sys.exit(f"unknown: {verb}")


async def repeat(seconds, call):
    """Calls one after the other for so long; how many in a second."""
    began, done = time.time(), 0
    while time.time() - began < seconds:
        await call()
        done += 1
    return done / (time.time() - began)
