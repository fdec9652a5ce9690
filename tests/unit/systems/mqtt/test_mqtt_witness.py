"""Whether a session is lost, by its witness: of brokers that keep sessions without subscriptions, and of one that does
not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from connect_core.errors import ConfigError
from connect_core.systems.mqtt import probing
from connect_core.systems.mqtt import session as module
from connect_core.systems.mqtt.connection import Grants
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.probing import BrokerFacts
from connect_core.systems.mqtt.session_state import SessionState

OPTIONS = MqttSourceOptions.model_validate({"host": "h", "filters": ["a"], "uid": "u"})
WITNESSED = SessionState(("a",), witnessed=True)


def sessions(kept: set[str], *, keeps: bool = True) -> Callable[..., Any]:
    def connect(options: MqttSourceOptions, client_id: str, **_: Any) -> Any:
        known = client_id in kept
        if keeps:
            kept.add(client_id)
        return SimpleNamespace(
            kept=known,
            grants=Grants(),
            close=lambda: None,
            give_up=lambda: kept.discard(client_id),
            subscribe=lambda filters, qos: None,
        )

    return connect


@pytest.mark.parametrize("standing", [WITNESSED, SessionState()], ids=["lost", "first-look"])
def test_a_broker_that_keeps_no_session_without_subscriptions_is_refused(
    monkeypatch: pytest.MonkeyPatch, standing: SessionState
) -> None:
    """RabbitMQ makes a session with its first subscription: each look would call it lost."""
    monkeypatch.setattr(module, "Session", sessions(set(), keeps=False))
    with pytest.raises(ConfigError, match="does not keep a session without subscriptions"):
        module.is_lost(OPTIONS, 0, standing)


def test_what_a_witness_says(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: set[str] = set()
    monkeypatch.setattr(module, "Session", sessions(kept))
    assert module.is_lost(OPTIONS, 0, WITNESSED)
    assert kept == set(), "it would pass for the old one"
    assert not module.is_lost(OPTIONS, 0, SessionState())
    assert kept == {OPTIONS.witness_id(0)}
    assert not module.is_lost(OPTIONS, 0, WITNESSED)


def test_a_witness_of_before_a_loss_says_nothing_of_the_session_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of another broker, which has kept what it had when it was the one that answered."""
    of_before = {OPTIONS.witness_id(0)}
    monkeypatch.setattr(module, "Session", sessions(of_before))
    assert not module.is_lost(OPTIONS, 0, WITNESSED)
    assert module.is_lost(OPTIONS, 0, replace(WITNESSED, losses=1))
    assert of_before == {OPTIONS.witness_id(0)}
    assert [OPTIONS.witness_id(0, losses) for losses in (0, 2)] == ["waybill-u-0-w", "waybill-u-0-w2"]


@pytest.mark.parametrize("keeps", [True, False])
def test_a_probe_says_whether_sessions_without_subscriptions_are_kept(
    monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    kept: set[str] = set()
    monkeypatch.setattr(probing, "Session", sessions(kept, keeps=keeps))
    monkeypatch.setattr(probing, "broker_facts", lambda options: BrokerFacts())
    said = list(probing.probe_source(OPTIONS))
    assert any("does not keep a session without subscriptions" in what and not good for good, what in said) != keeps
    assert kept == set(), "it is left as it was"
