#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/eventfd.h>

// Glibc's Swift module leaves <sys/eventfd.h> out.
static inline int millrace_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

// A GNU extension, hidden from Swift behind _GNU_SOURCE.
static inline void millrace_name_thread(const char *_Nonnull name) {
    pthread_setname_np(pthread_self(), name);
}
