"""Passes connections on: `relay.py LISTEN_ADDRESS TARGET_ADDRESS PORT…`, each port to the same one there.

Brokers of tests listen on the loopback interface of the machine, under whose address clients look for them. On another
host a relay listens there instead, and one on the machine takes what it passes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from functools import partial

_PIECE_BYTES = 256 * 1024


async def _copied(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(_PIECE_BYTES):
            target.write(piece)
            await target.drain()
    target.close()


async def _passed_on(address: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        there_reader, there_writer = await asyncio.open_connection(address, port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_copied(reader, there_writer), _copied(there_reader, writer))


async def main(listen: str, target: str, *ports: str) -> None:
    for port in map(int, ports):
        await asyncio.start_server(partial(_passed_on, target, port), listen, port)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
