import logging
from contextlib import asynccontextmanager

from common import ARGS, main
from procrastinate import App, PsycopgConnector

logging.getLogger("procrastinate").setLevel(logging.ERROR)


def application(url, count=None):
    app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=20))

    @app.task(name="nothing")
    async def nothing(n, at=None):
        count.one(at)

    return app, nothing


async def setup(url):
    app, _ = application(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def insert(url, count):
    app, nothing = application(url)
    async with app.open_async():
        while count > 0:
            chunk = min(count, 1000)
            await nothing.batch_defer_async(*[ARGS] * chunk)
            count -= chunk


@asynccontextmanager
async def caller(url):
    app, nothing = application(url)
    async with app.open_async():
        yield lambda args: nothing.defer_async(**args)


async def work(url, count, stays=False):
    app, _ = application(url, count)
    async with app.open_async():
        await app.run_worker_async(
            wait=stays, concurrency=20, install_signal_handlers=False, delete_jobs="successful")


if __name__ == "__main__":
    main(setup, insert, caller, work)
