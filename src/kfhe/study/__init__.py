"""The study: many classifiers on many datasets, with and without label noise, and what follows from it."""
