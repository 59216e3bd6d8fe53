// Kernels are block programs: phases that the threads of a block share, with a barrier between two of them. This header
// says what that is on a GPU, and, so that the same programs can be run and tested anywhere, on an ordinary processor:
// there a block has as many threads as it is given, most often one, and blocks run one after the other.
//
//     KFHE_KERNEL(name, Arguments)    the head of a kernel, whose one argument is called `given`
//     EACH(i, n)                      a loop over 0 .. n - 1 that the threads of a block share
//     ONCE                            what one thread does for all
//     BARRIER()                       what was written before it can be read after it
//     SHARED(Type, name)              memory that the threads of a block share
//     room                            more of it: as many numbers as the kernel is started with, at most ROOM
//     BLOCK, N_BLOCKS                 the number of this block, and of all

#pragma once

#ifdef __CUDACC__
#define KFHE_DEVICE __device__
#endif

#include <cstdint>
#include <cstring>

constexpr int ROOM = 10240;  // numbers of 32 bits: what any GPU has for a block, less what is named

#ifdef __CUDACC__

#define KFHE_APART __device__ __noinline__  // a function whose registers the rest of a kernel need not have
#define KFHE_KERNEL(name, Arguments) extern "C" __global__ void name(const Arguments given)
#define EACH(i, n) for (int64_t i = threadIdx.x; i < int64_t(n); i += blockDim.x)
#define ONCE if (threadIdx.x == 0)
#define BARRIER() __syncthreads()
#define SHARED(Type, name) __shared__ Type name
#define BLOCK int64_t(blockIdx.x)
#define N_BLOCKS int64_t(gridDim.x)

extern __shared__ int32_t room[];

namespace kfhe {

using Word = unsigned long long;

KFHE_DEVICE inline int32_t add_to(int32_t *sum, int32_t value) { return atomicAdd(sum, value); }
KFHE_DEVICE inline uint32_t add_to(uint32_t *sum, uint32_t value) { return atomicAdd(sum, value); }
KFHE_DEVICE inline int64_t add_to(int64_t *sum, int64_t value) {
    return int64_t(atomicAdd(reinterpret_cast<Word *>(sum), Word(value)));
}
KFHE_DEVICE inline void raise_to(uint64_t *top, uint64_t value) { atomicMax(reinterpret_cast<Word *>(top), Word(value)); }
KFHE_DEVICE inline void raise_to(int32_t *top, int32_t value) { atomicMax(top, value); }
KFHE_DEVICE inline void lower_to(int32_t *least, int32_t value) { atomicMin(least, value); }
KFHE_DEVICE inline void set_bits(uint32_t *word, uint32_t bits) { atomicOr(word, bits); }
KFHE_DEVICE inline int count_bits(uint32_t word) { return __popc(word); }
KFHE_DEVICE inline uint64_t bits_of(double value) { return uint64_t(__double_as_longlong(value)); }
KFHE_DEVICE inline void publish() { __threadfence(); }  // before other blocks are told that something was written

}  // namespace kfhe

#else

#include <barrier>
#include <optional>
#include <thread>
#include <vector>

#define KFHE_APART inline

namespace kfhe {

// How a kernel is run: blocks and threads in their order, or in the opposite one.
struct Launch {
    int64_t n_blocks;
    int64_t n_threads;
    int64_t backwards;
    int64_t n_room;
};

inline Launch launch;
inline int64_t block;
inline thread_local int64_t thread_number;
inline std::optional<std::barrier<>> barrier;
inline int32_t room[ROOM];

struct Share {  // of a thread in a loop over 0 .. n - 1
    int64_t n, done = thread_number;
    bool more() const { return done < n; }
    int64_t place() const { return launch.backwards ? n - 1 - done : done; }
    void next() { done += launch.n_threads; }
};

inline void wait_for_all() {
    if (launch.n_threads > 1) barrier->arrive_and_wait();
}

// Return whether the blocks have left alone the room that they were not given.
template <class Arguments>
bool run(void (*program)(const Arguments &), const Arguments *given, const Launch &wanted) {
    launch = wanted;
    for (int64_t i = 0; i < launch.n_blocks; ++i) {
        block = launch.backwards ? launch.n_blocks - 1 - i : i;
        std::memset(room, 0xA5, sizeof room);
        barrier.emplace(launch.n_threads);
        std::vector<std::thread> others;
        for (int64_t thread = 1; thread < launch.n_threads; ++thread)
            others.emplace_back([=] {
                thread_number = thread;
                program(*given);
            });
        program(*given);
        for (auto &other : others) other.join();
        for (int64_t i = launch.n_room; i < ROOM; ++i)
            if (uint32_t(room[i]) != 0xA5A5A5A5) return false;
    }
    return true;
}

template <class Number>
Number add_to(Number *sum, Number value) { return __atomic_fetch_add(sum, value, __ATOMIC_RELAXED); }
template <class Number>
void raise_to(Number *top, Number value) {
    Number found = __atomic_load_n(top, __ATOMIC_RELAXED);
    while (found < value && !__atomic_compare_exchange_n(top, &found, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
template <class Number>
void lower_to(Number *least, Number value) {
    Number found = __atomic_load_n(least, __ATOMIC_RELAXED);
    while (found > value && !__atomic_compare_exchange_n(least, &found, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
inline void set_bits(uint32_t *word, uint32_t bits) { __atomic_fetch_or(word, bits, __ATOMIC_RELAXED); }
inline int count_bits(uint32_t word) { return __builtin_popcount(word); }
inline uint64_t bits_of(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline void publish() {}

}  // namespace kfhe

#define KFHE_KERNEL(name, Arguments) \
    static void name##_of_block(const Arguments &given); \
    extern "C" bool name(const Arguments *given, const kfhe::Launch *launch) { \
        return kfhe::run(name##_of_block, given, *launch); \
    } \
    static void name##_of_block(const Arguments &given)
#define EACH(i, n) \
    for (kfhe::Share i##_share{int64_t(n)}; i##_share.more(); i##_share.next()) \
        if (const int64_t i = i##_share.place(); true)
#define ONCE if (kfhe::thread_number == 0)
#define BARRIER() kfhe::wait_for_all()
#define SHARED(Type, name) static Type name
#define BLOCK kfhe::block
#define N_BLOCKS kfhe::launch.n_blocks

#endif
