"""The datasets of the paper, and the results that it published.

Its algorithm is in `kfhe.training`, and its experiment is the plan ``paper``.
"""
