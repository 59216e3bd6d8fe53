"""Studies: plans, runs of classifiers on many datasets, result files, analysis and reports.

Rank tests are in `kfhe.stats`, noise is in `kfhe.noise`; everything specific to the paper is in `paper`.
"""
