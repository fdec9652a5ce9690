"""Whether a server of this machine answers a request over HTTP."""

from __future__ import annotations

_LIMIT_S = 3.0


def answers(port: int, path: str) -> bool:
    """With the status 200, within some seconds."""
    from urllib.request import ProxyHandler, build_opener  # most commands do without

    direct = build_opener(ProxyHandler({}))  # a proxy of the user's knows nothing of this loopback
    try:
        with direct.open(f"http://127.0.0.1:{port}{path}", timeout=_LIMIT_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
