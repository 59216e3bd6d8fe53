"""Model files: a JSON header and small arrays in one safetensors file, with all contents validated.

Files for other programs are written by `kfhe.export`; `kfhe.files` writes any file safely.
"""
