"""What the attack holds for certain of the telegrams that it has given to a broker."""

from tests.attack.feeding import Devices


def test_what_was_acknowledged_shortly_before_a_kill_is_not_sure() -> None:
    """Shortly after it as well: the acknowledgement may have been read late."""
    devices = Devices(lambda: 0, acknowledged={0: 90.0, 1: 98.0, 2: 100.2, 3: 102.0})
    assert devices.sure == [0, 1, 2, 3]
    devices.kills.append(100.0)
    assert devices.sure == [0, 3]
