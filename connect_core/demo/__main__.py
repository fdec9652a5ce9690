"""`python -m connect_core.demo [SECONDS]`, called by `make demo`: lines come for that long, two minutes unless told.

Exit code 0: both sides are the same; 5: they differ.
"""

from __future__ import annotations

import sys

from connect_core.config.home import create_home
from connect_core.demo import story
from connect_core.demo.screen import Screen
from connect_core.errors import WaybillError


def main() -> int:
    screen = Screen(story.STEPS)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else story.SECONDS
    try:
        story.tell(create_home(), screen, seconds)
    except WaybillError as error:
        sys.stdout.flush()
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nInterrupted; the stack stays up until `make stop`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
