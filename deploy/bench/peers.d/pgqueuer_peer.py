import json
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import uvloop
from common import ARGS, main
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, QueueManager, Queries
from pgqueuer.types import QueueExecutionMode

PAYLOAD = json.dumps(ARGS).encode()


async def setup(url):
    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def insert(url, count):
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    while count > 0:
        chunk = min(count, 5000)
        await queries.enqueue(["nothing"] * chunk, [PAYLOAD] * chunk, [0] * chunk)
        count -= chunk
    await connection.close()


@asynccontextmanager
async def caller(url):
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    yield lambda args: queries.enqueue("nothing", json.dumps(args).encode())
    await connection.close()


async def work(url, count, stays=False):
    async with asyncpg.create_pool(url, min_size=2, max_size=4) as pool:
        manager = QueueManager(Queries(AsyncpgPoolDriver(pool)))

        @manager.entrypoint("nothing")
        async def nothing(job):
            count.one(json.loads(job.payload).get("at"))

        mode = QueueExecutionMode.continuous if stays else QueueExecutionMode.drain
        await manager.run(dequeue_timeout=timedelta(seconds=1), batch_size=1000, mode=mode)


if __name__ == "__main__":
    uvloop.install()
    main(setup, insert, caller, work)
