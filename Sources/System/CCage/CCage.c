#define _GNU_SOURCE
#include "CCage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool limit(int what, uint64_t value) {
    struct rlimit rule = {.rlim_cur = value, .rlim_max = value};
    struct rlimit now;
    if (getrlimit(what, &now) == 0 && now.rlim_max < value) rule.rlim_cur = rule.rlim_max = now.rlim_max;
    return setrlimit(what, &rule) == 0;
}

static bool limits(const struct millrace_cage *cage) {
    bool done = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, cage->file_size) && limit(RLIMIT_NOFILE, cage->descriptors);
    if (cage->address_space) done = limit(RLIMIT_AS, cage->address_space) && done;
    if (cage->cpu_seconds) {
        // The soft limit ends it with SIGXCPU, which names the reason; the hard one a second later, should it have caught that.
        struct rlimit rule = {.rlim_cur = cage->cpu_seconds, .rlim_max = cage->cpu_seconds + 1};
        done = setrlimit(RLIMIT_CPU, &rule) == 0 && done;
    }
    int niceness = cage->niceness > 19 ? 19 : cage->niceness;
    if (niceness > getpriority(PRIO_PROCESS, 0)) done = setpriority(PRIO_PROCESS, 0, niceness) == 0 && done;
    if (cage->niceness > 19) done = sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}) == 0 && done;
    return done;
}

static bool become(uid_t user) { return setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0; }

// Root in a namespace is root for the files outside too. The user has the number of the process added to it, so that two children that
// live at once never share one: above what systemd gives to containers. Where so high a number is not mapped, it is nobody.
static bool become_another_user(void) {
    if (geteuid() != 0) return true;
    if (setgroups(0, NULL) != 0) return false;
    return become(1879048192u + (uid_t)getpid()) || become(65534);
}

// The kernel forgets the wish whenever the user or the capabilities change, and the filter refuses to utter it again: so it is uttered
// between them. The parent may have gone before.
static bool die_with(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return false;
    if (parent != 0 && getppid() != parent) _exit(0);
    return true;
}

static bool drop_privileges(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    return syscall(SYS_capset, &header, none) == 0 && done;
}

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#define ACCESS_FS_IOCTL_DEV (1ULL << 15)

static bool close_files(const struct millrace_cage *cage) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) return false;
    struct landlock_ruleset_attr rules = {.handled_access_fs = (1ULL << 13) - 1};  // all that the first version knows
    if (version >= 2) rules.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3) rules.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
    if (version >= 5) rules.handled_access_fs |= ACCESS_FS_IOCTL_DEV;
    // As long as the first version's: what was added later stays unhandled, and the network has a namespace and seccomp.
    int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0);
    if (set < 0) return false;
    bool done = true;
    for (int i = 0; cage->opens_files && i < cage->readable_count; i++) {
        struct landlock_path_beneath_attr rule = {
            .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
            .parent_fd = open(cage->readable[i], O_PATH | O_CLOEXEC),
        };
        if (rule.parent_fd < 0) continue;  // what does not exist can not be read either
        struct stat about;
        if (fstat(rule.parent_fd, &about) == 0 && !S_ISDIR(about.st_mode))
            rule.allowed_access &= ~(uint64_t)LANDLOCK_ACCESS_FS_READ_DIR;
        done = syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 && done;
        close(rule.parent_fd);
    }
    done = syscall(SYS_landlock_restrict_self, set, 0) == 0 && done;
    close(set);
    return done;
}

// What computing on bytes in hand takes, and nothing else. All others fail with EPERM, so that a library that asks for something odd goes
// on without it, as libraries do.
static const int always[] = {
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(close), SCMP_SYS(lseek), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
    SCMP_SYS(statx), SCMP_SYS(ftruncate), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(dup),
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect),
    SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(futex), SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq), SCMP_SYS(set_tid_address), SCMP_SYS(arch_prctl), SCMP_SYS(membarrier),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(times), SCMP_SYS(getrusage), SCMP_SYS(getrandom),
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
    SCMP_SYS(getegid), SCMP_SYS(getcwd), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(restart_syscall),
};
static const int for_files[] = {
    SCMP_SYS(openat), SCMP_SYS(open), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(statfs),
    SCMP_SYS(fstatfs), SCMP_SYS(fadvise64),
};

static bool allow(scmp_filter_ctx filter, const int *calls, size_t count) {
    bool done = true;
    for (size_t i = 0; i < count; i++) {
        if (calls[i] < 0) continue;  // this machine has no such call
        done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0) == 0 && done;
    }
    return done;
}

// What a call may be asked for by its arguments. A call that names a process names this one, and none sends a signal to another one by
// way of a descriptor: fcntl has no owner, no signal and no O_ASYNC here, and ioctl is no call at all.
static bool allow_in_part(scmp_filter_ctx filter) {
    static const int commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL};
    bool done = true;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)commands[i])) == 0 && done;
    done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 2, SCMP_A1(SCMP_CMP_EQ, F_SETFL), SCMP_A2(SCMP_CMP_MASKED_EQ, O_ASYNC, 0)) == 0
        && done;
    // abort() says what happened.
    done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())) == 0 && done;
    // Its own limits, to read them and not to set them.
    done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0)) == 0 && done;
    return done;
}

static bool close_calls(const struct millrace_cage *cage) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter) return false;
    bool done = allow(filter, always, sizeof always / sizeof always[0]);
    if (cage->opens_files) done = allow(filter, for_files, sizeof for_files / sizeof for_files[0]) && done;
    done = allow_in_part(filter) && done;
    // glibc falls back from clone3, whose flags a filter can not see.
    done = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0 && done;
    if (cage->starts_threads)
        done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)) == 0 && done;
    done = seccomp_load(filter) == 0 && done;
    seccomp_release(filter);
    return done;
}

uint32_t millrace_cage_enter(const struct millrace_cage *cage) {
    uint32_t refused = 0;
    if (!limits(cage)) refused |= MILLRACE_CAGE_LIMITS;
    if (!become_another_user()) refused |= MILLRACE_CAGE_USER;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0) refused |= MILLRACE_CAGE_NAMESPACES;
    if (!drop_privileges()) refused |= MILLRACE_CAGE_PRIVILEGES;
    if (!die_with(cage->parent)) refused |= MILLRACE_CAGE_PRIVILEGES;
    if (!close_files(cage)) refused |= MILLRACE_CAGE_FILES;
    if (!close_calls(cage)) refused |= MILLRACE_CAGE_CALLS;
    return refused;
}

int millrace_cage_refuse_layers(void) {
    static const int layers[] = {
        SCMP_SYS(unshare), SCMP_SYS(landlock_create_ruleset), SCMP_SYS(landlock_add_rule), SCMP_SYS(landlock_restrict_self)};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter) return -1;
    int result = 0;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (layers[i] >= 0 && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), layers[i], 0) != 0) result = -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || seccomp_load(filter) != 0) result = -1;
    seccomp_release(filter);
    return result;
}

long millrace_cage_call(long number, const long arguments[_Nonnull 6]) {
    return syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
