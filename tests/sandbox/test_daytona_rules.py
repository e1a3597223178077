"""Creation of cloud sandboxes stays under the provider's quota, and the key is found by name."""

import pytest
from pydantic import ValidationError

from t1x.sandbox.daytona import DaytonaSandbox


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"creates_per_second": 10},
            r"\(10\) and create_burst \(6\) make up to 606 sandboxes a minute, but quota_per_minute is 600",
        ),
        ({"create_burst": 241}, "make up to 601 sandboxes"),
        ({"quota_per_minute": 365}, "make up to 366 sandboxes"),
        ({"image": "ubuntu", "snapshot": "mine"}, "set one of them"),
    ],
)
def test_what_the_provider_refuses_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        DaytonaSandbox(**fields)


def test_the_quota_may_be_used_up():
    for sandbox in (DaytonaSandbox(create_burst=240), DaytonaSandbox(quota_per_minute=366)):
        assert sandbox.creates_per_second * 60 + sandbox.create_burst == sandbox.quota_per_minute


def test_the_key_is_in_the_variable_that_is_named(monkeypatch):
    monkeypatch.setenv("MY_KEY", "key")
    monkeypatch.delenv("DAYTONA_API_KEY", raising=False)
    assert any(line.startswith("environment variable DAYTONA_API_KEY") for line in DaytonaSandbox().missing())
    assert not any("environment variable" in line for line in DaytonaSandbox(api_key_variable="MY_KEY").missing())
