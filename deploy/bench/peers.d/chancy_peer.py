import logging
from contextlib import asynccontextmanager

from chancy import Chancy, Queue, Worker, job
from common import ARGS, main

current = None


@job(queue="default")
async def nothing(n, at=None):
    current.one(at)


def client(url):
    log = logging.getLogger("peer")
    log.setLevel(logging.ERROR)
    return Chancy(url, log=log)


def queue():
    return Queue("default", concurrency=500, executor=Chancy.Executor.Async, polling_interval=1, eager_polling=True)


async def setup(url):
    async with client(url) as chancy:
        await chancy.migrate()
        await chancy.declare(queue(), upsert=True)


async def insert(url, count):
    async with client(url) as chancy:
        jobs = [nothing.job.with_kwargs(**ARGS)] * count
        async for _ in chancy.push_many(jobs, batch_size=5000):
            pass


@asynccontextmanager
async def caller(url):
    async with client(url) as chancy:
        yield lambda args: chancy.push(nothing.job.with_kwargs(**args))


async def work(url, count, stays=False):
    global current
    current = count
    async with client(url) as chancy, Worker(chancy, register_signal_handlers=False):
        await count.until_done()


if __name__ == "__main__":
    # Jobs carry the name of what they call, which must not be __main__.
    import chancy_peer

    main(chancy_peer.setup, chancy_peer.insert, chancy_peer.caller, chancy_peer.work)
