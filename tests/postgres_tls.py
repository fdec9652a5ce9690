"""TLS in front of a PostgreSQL that was built without it: asked for as the protocol has it, passed on in the clear.

https://www.postgresql.org/docs/18/protocol-flow.html#PROTOCOL-FLOW-SSL
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_ASKS_FOR_TLS = bytes((0, 0, 0, 8, 4, 210, 22, 47))
_CHUNK_BYTES = 1 << 16


@contextmanager
def tls_in_front(options: dict[str, Any], context: ssl.SSLContext | None) -> Iterator[dict[str, Any]]:
    """The options of the server, with the address of what stands in front: that hangs up on who does not ask for TLS.
    Without a context it says that there is none."""
    with asyncio.Runner() as runner:
        server = runner.run(asyncio.start_server(_Front(options, context).take, "127.0.0.1"))
        loop = runner.get_loop()
        ended = asyncio.Event()
        serving = threading.Thread(target=runner.run, args=(_until(ended, server),))
        serving.start()
        yield {**options, "host": "127.0.0.1", "port": server.sockets[0].getsockname()[1]}
        loop.call_soon_threadsafe(ended.set)
        serving.join()


async def _until(ended: asyncio.Event, server: asyncio.Server) -> None:
    await ended.wait()
    server.close()


class _Front:
    def __init__(self, options: dict[str, Any], context: ssl.SSLContext | None) -> None:
        self._host, self._port, self._context = str(options["host"]), int(options["port"]), context

    async def take(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await reader.readexactly(len(_ASKS_FOR_TLS)) == _ASKS_FOR_TLS:
                writer.write(b"S" if self._context else b"N")
                if self._context:
                    await writer.start_tls(self._context)
                server = await self._server()
                await asyncio.gather(_pump(reader, server[1]), _pump(server[0], writer))
        writer.close()

    async def _server(self) -> tuple[StreamReader, StreamWriter]:
        if self._host.startswith("/"):
            return await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        return await asyncio.open_connection(self._host, self._port)


async def _pump(origin: StreamReader, target: StreamWriter) -> None:
    with suppress(OSError):
        while data := await origin.read(_CHUNK_BYTES):
            target.write(data)
            await target.drain()
    target.close()
