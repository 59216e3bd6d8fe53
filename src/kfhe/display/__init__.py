"""Text, colours, progress bars and notebooks: what is shown wherever there is no plot.

Plots are in `kfhe.plotting`; what commands print is in `kfhe.cli`.
"""
