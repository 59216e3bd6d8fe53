"""Studies: classifiers compared on many datasets, with and without noise, from the plan to the report.

The tests of significance are `kfhe.stats`, the noise is `kfhe.noise`, and what is about the paper alone is in
`paper`.
"""
