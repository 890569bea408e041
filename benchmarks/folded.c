/* Blocks of 1 GB and more, folded onto one piece of memory: every stretch of 256 MB is the same memory.

   Pinocchio's Data holds four tensors of n^3 numbers, 32 GB for a chain of 1,000 bodies, which neither its inverse
   nor its forward dynamics reads. What is written there is lost, and nobody misses it. Loaded with LD_PRELOAD;
   folded blocks are never given back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 30)
#define PIECE ((size_t)1 << 28)
#define MOST 256

static void *blocks[MOST];
static int used;

static void *folded(size_t size) {
    static int memory = -1;
    size_t whole = (size + PIECE - 1) / PIECE * PIECE;
    if (memory < 0 && ((memory = memfd_create("folded", 0)) < 0 || ftruncate(memory, PIECE))) return 0;
    char *start = mmap(0, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED || used == MOST) return 0;
    for (size_t at = 0; at < whole; at += PIECE)
        if (mmap(start + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) == MAP_FAILED) return 0;
    return blocks[used++] = start;
}

void *malloc(size_t size) {
    static void *(*plain)(size_t);
    if (!plain) plain = dlsym(RTLD_NEXT, "malloc");
    return size >= LARGE ? folded(size) : plain(size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    static void *(*plain)(size_t, size_t);
    if (!plain) plain = dlsym(RTLD_NEXT, "aligned_alloc");
    return size >= LARGE ? folded(size) : plain(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    static int (*plain)(void **, size_t, size_t);
    if (!plain) plain = dlsym(RTLD_NEXT, "posix_memalign");
    if (size < LARGE) return plain(out, alignment, size);
    return (*out = folded(size)) ? 0 : ENOMEM;
}

void free(void *block) {
    static void (*plain)(void *);
    if (!plain) plain = dlsym(RTLD_NEXT, "free");
    for (int i = 0; i < used; i++)
        if (blocks[i] == block) return;
    plain(block);
}
