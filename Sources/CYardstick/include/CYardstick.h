#ifndef MILLRACE_YARDSTICK_H
#define MILLRACE_YARDSTICK_H

// What Postgres itself allows: bare loops of hand-written statements over the tables of the queue, same indexes, same history,
// same durability, and nothing else: no handlers, no decoding, no checks. Each call blocks until it is through.

#include <stdint.h>

#pragma clang assume_nonnull begin

typedef struct {
    int64_t jobs;
    double seconds;
    /// Empty when all went well.
    char failure[256];
} yardstick_result;

/// Claims and ends the jobs of one lane, in batches, on `threads` connections, until none is left or each connection has
/// taken `most`. The session must exist.
yardstick_result yardstick_drain(
    const char *conninfo, int64_t session, int32_t queue, int32_t lane, int32_t kind, int32_t batch, int threads, int64_t most);

/// Executes one prepared statement over and over, each time in a transaction of its own, on `threads` connections for so long: the
/// same client for a hand-written statement and for a function of ours. The values are text.
yardstick_result yardstick_call(
    const char *conninfo, const char *statement, const char *_Nonnull const *_Nonnull values, int count, int threads, double seconds);

/// Inserts jobs one at a time, each in a transaction of its own, on `threads` connections for so long.
yardstick_result yardstick_enqueue(
    const char *conninfo, int32_t queue, int32_t lane, int32_t kind, int threads, double seconds);

/// Inserts `jobs` jobs, `batch` to a statement, on one connection.
yardstick_result yardstick_enqueue_bulk(
    const char *conninfo, int32_t queue, int32_t lane, int32_t kind, int64_t jobs, int32_t batch);

/// Enqueues `tries` jobs, one at a time and pauses between them, with a notification in each transaction; a listener on a
/// connection of its own claims each when it hears of it, and ends it. `milliseconds` gets the time from each call to the row in
/// the listener's hands. The session must exist, and the line be empty.
yardstick_result yardstick_wake(
    const char *conninfo, int64_t session, int32_t queue, int32_t lane, int32_t kind, int32_t tries, int32_t pause_ms,
    double *milliseconds);

/// Fetches an address so many times, so many at a time, with bare libcurl on one thread. `version` is 1, or 2 for
/// HTTP/2 over TLS; `jobs` counts the requests.
yardstick_result yardstick_requests(
    const char *url, int version, const char *_Nullable certificates, int in_flight, int64_t requests);

/// The same with POST over HTTP/2, always these headers, one a line, and this body.
yardstick_result yardstick_posts(
    const char *url, const char *_Nullable certificates, const char *headers, const char *body, int in_flight,
    int64_t requests);

#pragma clang assume_nonnull end

#endif
