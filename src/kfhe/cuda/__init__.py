"""Training on a GPU: the very models of the CPU.

Here are the kernels, in CUDA C++, and what starts them. The rules by which trees are grown and the random
numbers are in the engine's own headers.
"""
