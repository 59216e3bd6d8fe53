"""The datasets of the paper, and its published results.

Its algorithm is in `kfhe.training`, and its experiment is the plan ``paper``.
"""
