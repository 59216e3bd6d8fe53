"""Benchmarks: ours and its peers, timed on the same data in one run."""
