"""The same training on a GPU, to the bit.

Here are the kernels, in CUDA C++, and what starts them. The rules by which trees are grown and the random numbers are
the engine's own headers.
"""
