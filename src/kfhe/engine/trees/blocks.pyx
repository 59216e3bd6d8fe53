"""Blocks: memory that grows, and is handed over to NumPy without a copy.

A forest is the largest thing that training makes. Were it kept in vectors, it would be there twice
when they grow and twice again when the arrays are made of them.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy


cdef class Block:
    """Bytes, one piece after the other. Once an array looks at them, they can't change any more."""

    def __cinit__(self):
        self.data = NULL
        self.size = self.capacity = 0
        self.n_views = 0

    def __dealloc__(self):
        free(self.data)

    cdef int append(self, const void *data, size_t size) except -1:
        """Add some bytes at the end."""
        cdef char *moved
        if self.n_views:
            raise BufferError("the forest was handed over and can't grow any more")
        if self.size + size > self.capacity:
            # Large blocks are moved by the system without copying, so they may grow in small steps.
            moved = <char *> realloc(self.data, (self.size + size) * 5 // 4 + 64)
            if moved == NULL:
                raise MemoryError("no memory for the forest")
            self.data, self.capacity = moved, (self.size + size) * 5 // 4 + 64
        if size:
            memcpy(self.data + self.size, data, size)
        self.size += size
        return 0

    cdef int truncate(self, size_t size) except -1:
        """Drop what is behind some size."""
        if self.n_views:
            raise BufferError("the forest was handed over and can't shrink any more")
        self.size = min(self.size, size)
        return 0

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, False, flags)
        self.n_views += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.n_views -= 1
