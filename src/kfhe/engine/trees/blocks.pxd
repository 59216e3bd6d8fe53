cdef class Block:
    cdef char *data
    cdef size_t size
    cdef size_t capacity
    cdef int n_views

    cdef int append(self, const void *data, size_t size) except -1
    cdef int truncate(self, size_t size) except -1
