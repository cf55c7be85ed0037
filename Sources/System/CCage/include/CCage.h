#ifndef MILLRACE_CCAGE_H
#define MILLRACE_CCAGE_H

#include <stdbool.h>
#include <stdint.h>

// What a child does to itself before it looks at foreign bytes: every step here narrows what is left to it, and none can be undone. In C,
// for half of the calls are variadic or raw system calls, and because it must not need anything of a runtime afterwards.

/// The layers, as bits.
enum {
    MILLRACE_CAGE_LIMITS = 1,       ///< address space, CPU, file size, descriptors, no core
    MILLRACE_CAGE_USER = 2,         ///< not root, but a user of its own
    MILLRACE_CAGE_PRIVILEGES = 4,   ///< no new privileges, no capabilities, no life after its parent's
    MILLRACE_CAGE_NAMESPACES = 8,   ///< a user, network and IPC namespace of its own
    MILLRACE_CAGE_FILES = 16,       ///< Landlock: no file but those named
    MILLRACE_CAGE_CALLS = 32,       ///< seccomp: no system call but those named
};

struct millrace_cage {
    uint64_t address_space;          ///< bytes; 0: as it is
    uint64_t cpu_seconds;            ///< 0: as it is
    uint64_t file_size;              ///< of what it writes, bytes
    uint64_t descriptors;
    int32_t parent;                  ///< who started it: it dies with that thread, and at once if that is gone; 0: any parent
    int niceness;                    ///< 0: as it is; never less than it is; 20: only when nobody else wants to
    bool opens_files;                ///< else no file can be opened at all
    bool starts_threads;
    int readable_count;
    const char *_Nonnull const *_Nullable readable;  ///< folders that may be read, if files may be opened
};

/// Enters; returns the layers that the kernel refused. The process must have one thread.
uint32_t millrace_cage_enter(const struct millrace_cage *_Nonnull cage);

/// For tests: from here on the kernel refuses namespaces and Landlock, as some do. 0 or -1.
int millrace_cage_refuse_layers(void);

/// For tests: any system call, as the kernel answers it.
long millrace_cage_call(long number, const long arguments[_Nonnull 6]);

#endif
