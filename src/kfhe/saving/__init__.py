"""Model files: what is known of a model as JSON, its trees as small arrays, and both in one safetensors file.

How a file gets onto the disk whole is `kfhe.files`; files for other programs are `kfhe.export`.
"""
