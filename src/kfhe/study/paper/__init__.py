"""What is about the paper: its datasets, and the figures that it prints.

Its algorithm is not here, but in `kfhe.training`; nor is its experiment, which is a plan as any other.
"""
