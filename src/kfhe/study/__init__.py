"""Studies: a plan, runs of classifiers on many datasets, the file of results, their analysis and the report.

Rank tests are in `kfhe.stats`, noise is in `kfhe.noise`, and what belongs to the paper alone is in `paper`.
"""
