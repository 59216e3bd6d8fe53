"""Training on a GPU, with the same models as on the CPU.

This package has the kernels, in CUDA C++, and the code that starts them. The rules of growing trees and the
random numbers are in the headers of the engine.
"""
