"""What is about the paper: its datasets, the figures that it prints, its claims, and ours beside them.

Its algorithm is not here, but in `kfhe.training`; nor is its experiment, which is a plan as any other.
"""
