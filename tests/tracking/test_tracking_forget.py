import pytest

from t1x.tracking.mlflow_tracking import MLflowTracking


def test_a_store_that_does_not_answer_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(ValueError, match=r"the tracking store http://127\.0\.0\.1:9 couldn't be asked to delete the run"):
        MLflowTracking(uri="http://127.0.0.1:9").forget(tmp_path / "a", "abc")
