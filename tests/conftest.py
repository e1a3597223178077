"""`--hypothesis-profile=soak` tries many more examples (`make soak`)."""

from hypothesis import HealthCheck, settings

settings.register_profile("soak", max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
