"""A real Kubernetes for tests, on a bare Linux machine without Docker."""
