"""Text, colours, progress bars and notebooks.

Plots are in `kfhe.plotting`; what commands print is in `kfhe.cli`.
"""
