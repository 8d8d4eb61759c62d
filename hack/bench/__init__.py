"""Benchmarks: the real program against simulators in another process, each figure beside a floor of the same run.

Nothing here is a test: machines are noisy, so only ratios are worth comparing. `make bench` runs all of it.
"""
