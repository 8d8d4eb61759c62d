"""Builders of GitHub's JSON objects, full enough to pass GitHub's own schemas in strict mode."""
