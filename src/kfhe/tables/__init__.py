"""Tables: how files and frames are read and written, and what trees see of them: features and bins.

What is learnt from a table lives elsewhere, and so do the commands and pages on which people ask for it.
"""
