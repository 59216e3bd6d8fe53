"""Tables: reading and writing files and data frames, and turning them into features and bins.

What is learnt from a table is in other packages, as are commands and pages that ask for tables.
"""
