#ifndef MILLRACE_CRESOLVER_H
#define MILLRACE_CRESOLVER_H

// The resolver's state is a macro's thread-local thing, and its accessors are macros: neither can be reached from Swift.

#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <string.h>

/// The answer's length, or less than 0 with h_errno's number in `failure`.
static inline int millrace_ask(const char *_Nonnull name, int type, unsigned char *_Nonnull answer, int size, int *_Nonnull failure) {
    struct __res_state state;
    memset(&state, 0, sizeof state);
    *failure = 0;
    if (res_ninit(&state) != 0) {
        *failure = NO_RECOVERY;
        return -1;
    }
    state.retrans = 3;
    state.retry = 2;
    int length = res_nquery(&state, name, ns_c_in, type, answer, size);
    if (length < 0) *failure = state.res_h_errno;
    res_nclose(&state);
    return length;
}

/// The strings of the nth TXT record of an answer, joined: their length, -1 when there is no such record, -2 when it is another's.
static inline int millrace_text(const unsigned char *_Nonnull answer, int length, int index, unsigned char *_Nonnull text, int size) {
    ns_msg message;
    ns_rr record;
    if (ns_initparse(answer, length, &message) != 0 || index >= ns_msg_count(message, ns_s_an)) return -1;
    if (ns_parserr(&message, ns_s_an, index, &record) != 0) return -1;
    if (ns_rr_type(record) != ns_t_txt) return -2;
    const unsigned char *at = ns_rr_rdata(record), *end = at + ns_rr_rdlen(record);
    int used = 0;
    while (at < end) {
        int count = *at++;
        if (at + count > end || used + count > size) return -2;
        memcpy(text + used, at, (size_t)count);
        used += count;
        at += count;
    }
    return used;
}

/// How many records of this type an answer has.
static inline int millrace_count(const unsigned char *_Nonnull answer, int length, int type) {
    ns_msg message;
    ns_rr record;
    int count = 0;
    if (ns_initparse(answer, length, &message) != 0) return 0;
    for (int index = 0; index < ns_msg_count(message, ns_s_an); index++) {
        if (ns_parserr(&message, ns_s_an, index, &record) == 0 && ns_rr_type(record) == (ns_type)type) count++;
    }
    return count;
}

#endif
