"""Passes connections on to a socket in the file system: `relay.py LISTEN_ADDRESS PORT SOCKET`.

The PostgreSQL of tests listens on no network. For other hosts this does.
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


async def _passed_on(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    there_reader, there_writer = await asyncio.open_unix_connection(path)
    await asyncio.gather(_copied(reader, there_writer), _copied(there_reader, writer))


async def main(listen: str, port: str, path: str) -> None:
    await asyncio.start_server(partial(_passed_on, path), listen, int(port))
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
