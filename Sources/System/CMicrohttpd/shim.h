#pragma once

// libmicrohttpd takes its options and gives its facts through variadic functions, which Swift cannot call.

#include <microhttpd.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>

/// Paths stay as they came: the reader of the path decides what %2F means.
static inline size_t millrace_mhd_keep_escapes(void *_Nullable context, struct MHD_Connection *_Nullable connection,
                                               char *_Nonnull text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

/// Ours, in Swift: the library is about to answer by itself.
void millrace_mhd_answers_itself(void *_Nonnull context);

/// Of all complaints the one that says so. They come with a va_list, which Swift cannot take.
static inline void millrace_mhd_complain(void *_Nonnull context, const char *_Nonnull format, va_list arguments) {
    (void)arguments;
    if (strncmp(format, "Error processing request", 24) == 0) millrace_mhd_answers_itself(context);
}

/// One thread that waits with epoll; all callbacks are called on it, with `context`. The daemon owns `listener` from then on.
/// Not strict for clients: strict, it answers a request without Host by itself, and with two heads.
static inline struct MHD_Daemon *_Nullable millrace_mhd_start(
    int listener, unsigned int connections, size_t memory, MHD_AcceptPolicyCallback _Nonnull accept,
    MHD_NotifyConnectionCallback _Nonnull visit, MHD_RequestCompletedCallback _Nonnull completed,
    void *_Nullable (*_Nonnull named)(void *_Nullable, const char *_Nonnull, struct MHD_Connection *_Nonnull),
    MHD_AccessHandlerCallback _Nonnull handle, void *_Nonnull context) {
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, accept, context, handle,
        context, MHD_OPTION_EXTERNAL_LOGGER, millrace_mhd_complain, context, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        memory, MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_NOTIFY_CONNECTION, visit, context,
        MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_URI_LOG_CALLBACK, named, context,
        MHD_OPTION_UNESCAPE_CALLBACK, millrace_mhd_keep_escapes, NULL, MHD_OPTION_END);
}

/// -1 when it has none.
static inline int millrace_mhd_socket(struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/// Bytes of the request line and the headers, with the empty line behind them, as they were sent. 0 when it does not know.
static inline size_t millrace_mhd_head_size(struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

/// What the callback for new connections has left there.
static inline void *_Nullable millrace_mhd_visitor(struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static inline const struct sockaddr *_Nullable millrace_mhd_peer(struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

/// The head of an answer whose size is not known. With chunks the library sends the last one also to HEAD, where no body may follow.
static inline int millrace_mhd_only_head(struct MHD_Response *_Nonnull response) {
    return MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END) == MHD_YES;
}

/// A macro with a cast.
static const uint64_t millrace_mhd_size_unknown = MHD_SIZE_UNKNOWN;
static const ssize_t millrace_mhd_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;
static const ssize_t millrace_mhd_end_with_error = MHD_CONTENT_READER_END_WITH_ERROR;

// epoll's flags are an enum, and its event a union, that Swift takes apart only with effort.

/// A descriptor that knows which sockets the other side has closed. -1: the system refuses.
static inline int millrace_mhd_hangups(void) { return epoll_create1(EPOLL_CLOEXEC); }

/// Until the socket is closed.
static inline int millrace_mhd_heed_hangup(int hangups, int socket, uint64_t key) {
    struct epoll_event event = {.events = EPOLLRDHUP, .data = {.u64 = key}};
    return epoll_ctl(hangups, EPOLL_CTL_ADD, socket, &event);
}

/// The keys of sockets whose other side has closed, or sends no more. Returns how many; does not wait.
static inline int millrace_mhd_hung_up(int hangups, uint64_t *_Nonnull keys, int most) {
    struct epoll_event events[256];
    int count = epoll_wait(hangups, events, most < 256 ? most : 256, 0);
    for (int place = 0; place < count; place++) keys[place] = events[place].data.u64;
    return count < 0 ? 0 : count;
}
