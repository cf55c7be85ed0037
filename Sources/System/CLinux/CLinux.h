#ifndef MILLRACE_CLINUX_H
#define MILLRACE_CLINUX_H

// Swift's Glibc module is built without _GNU_SOURCE, so what glibc adds to POSIX is invisible to Swift, and stays so
// whatever a header that imports the module defines. These shims declare the originals themselves.

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *_Nonnull actions, int from);
extern int pthread_setname_np(pthread_t thread, const char *_Nonnull name);
extern int pipe2(int ends[_Nonnull 2], int flags);

/// Closes every descriptor from `from` on in the child, also those that some library opened without O_CLOEXEC.
static inline int millrace_spawn_close_from(posix_spawn_file_actions_t *_Nonnull actions, int from) {
    return posix_spawn_file_actions_addclosefrom_np(actions, from);
}

/// Names the calling thread for `top -H` and debuggers; Linux keeps 15 characters.
static inline int millrace_name_thread(const char *_Nonnull name) {
    return pthread_setname_np(pthread_self(), name);
}

/// A pipe that is close-on-exec from its first moment, so that no child spawned meanwhile on another thread keeps it open.
static inline int millrace_pipe(int ends[_Nonnull 2], int flags) {
    return pipe2(ends, flags);
}

/// Glibc's Swift module leaves <sys/eventfd.h> out.
static inline int millrace_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

extern long syscall(long number, ...);

/// A descriptor that becomes readable when the process has ended. Not in Debian 12's glibc headers, and syscall is variadic.
static inline int millrace_pidfd(int process) {
    return (int)syscall(SYS_pidfd_open, process, 0);
}

/// Glibc's Swift module leaves <sys/epoll.h> out, and its event is a packed union.
static inline int millrace_epoll(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

/// Watches a descriptor: for what `events` says, or no longer when that is 0. `known` is true for one that is watched already.
static inline int millrace_epoll_watch(int epoll, int descriptor, unsigned events, int known) {
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    return epoll_ctl(epoll, events == 0 ? EPOLL_CTL_DEL : known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
}

/// Up to 64 descriptors of which there is news; their number, 0 when the time is over, or -1.
static inline int millrace_epoll_wait(
    int epoll, int descriptors[_Nonnull 64], unsigned events[_Nonnull 64], int milliseconds) {
    struct epoll_event found[64];
    int count = epoll_wait(epoll, found, 64, milliseconds);
    for (int i = 0; i < count; i++) {
        descriptors[i] = found[i].data.fd;
        events[i] = found[i].events;
    }
    return count;
}

/// Has the kernel signal this process when the thread that started it ends. It lasts beyond execve, and prctl is variadic.
static inline int millrace_signal_at_parents_end(int signal) {
    return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0);
}

/// Opens what lies beneath a directory, and follows no symbolic link on the way, nor one of procfs. Debian 12's glibc has no openat2.
static inline int millrace_open_beneath(int directory, const char *_Nonnull path, int flags) {
    struct open_how how = {
        .flags = (unsigned long long)flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

/// What kind of file system a file lies on, as statfs(2) numbers them; -1 when that can not be told.
static inline long millrace_file_system(int descriptor) {
    struct statfs about;
    return fstatfs(descriptor, &about) == 0 ? (long)about.f_type : -1;
}

/// From now on no thread of this process makes a socket or connects one: the calls fail with EACCES. Descriptors that are open stay as they are. 0, or -1
/// when the kernel refuses the filter. The filter is plain data, so that no library needs linking.
static inline int millrace_go_offline(void) {
#if defined(__x86_64__)
    const unsigned machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    const unsigned machine = AUDIT_ARCH_AARCH64;
#else
    const unsigned machine = 0;
#endif
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),  // calls of another machine's numbers
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 425, 1, 0),  // io_uring_setup, which could do both
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? 0 : -1;
}

#endif
