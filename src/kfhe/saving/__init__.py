"""Model files: a JSON header and small arrays in one safetensors file, and checks of everything that is read.

Files for other programs are written by `kfhe.export`; writing any file safely is `kfhe.files`.
"""
