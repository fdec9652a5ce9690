"""Configurations are judged and stored one at a time: each is compared with those of all connectors, which takes a
processor. Side by side none would be sooner, changes of one connector would be made in vain again and again, and reads
would wait for a thread.
"""

from __future__ import annotations

import asyncio

from fastapi import Request


def changing(request: Request) -> asyncio.Lock:
    """Of the application that the request is for: hold it meanwhile."""
    state = request.app.state
    if not hasattr(state, "changing"):
        state.changing = asyncio.Lock()
    lock: asyncio.Lock = state.changing
    return lock
