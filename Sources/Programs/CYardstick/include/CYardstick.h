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

/// A statement with its values as text; for the hand-written enqueue see `yardstick_enqueue`.
typedef struct {
    const char *text;
    const char *_Nonnull const *_Nonnull values;
    int count;
} yardstick_statement;

/// (kind, queue, lane, args): the hand-written enqueue of one job, which tells its number, as ours does.
extern const char *const yardstick_enqueue;

/// Connections, each with the same statements prepared, called some times, and kept: what a session does once is behind them.
typedef struct yardstick_callers yardstick_callers;

/// Opens `threads` connections. NULL when there is no memory; any other failure is told by the first turn. The statements are copied.
yardstick_callers *_Nullable yardstick_callers_open(
    const char *conninfo, const yardstick_statement *statements, int count, int threads);

/// Executes one of the statements over and over on all connections for so long, each time in a transaction of its own: the same client
/// for a hand-written statement and for a function of ours. `first`, if not negative, is executed once before, on the first of them.
yardstick_result yardstick_callers_turn(yardstick_callers *callers, int which, int first, double seconds);

void yardstick_callers_close(yardstick_callers *callers);

/// Inserts `jobs` jobs, `batch` to a statement, on one connection.
yardstick_result yardstick_enqueue_bulk(
    const char *conninfo, int32_t queue, int32_t lane, int32_t kind, int64_t jobs, int32_t batch);

/// Enqueues `tries` jobs, one at a time and pauses between them, with a notification in each transaction; a listener on a
/// connection of its own claims each when it hears of it, and ends it. `milliseconds` gets the time from each call to the row in
/// the listener's hands. The session must exist, and the line be empty.
yardstick_result yardstick_wake(
    const char *conninfo, int64_t session, int32_t queue, int32_t lane, int32_t kind, int32_t tries, int32_t pause_ms,
    double *milliseconds);

/// Makes `requests` requests for an address, `in_flight` at a time, with bare libcurl on one thread. `version` is 1, or 2 for HTTP/2
/// over TLS. The result's `jobs` counts the requests.
yardstick_result yardstick_requests(
    const char *url, int version, const char *_Nullable certificates, int in_flight, int64_t requests);

/// The same with POST over HTTP/2, always these headers, one a line, and this body.
yardstick_result yardstick_posts(
    const char *url, const char *_Nullable certificates, const char *headers, const char *body, int in_flight,
    int64_t requests);

/// Calls a function of one text parameter over and over on `connections` connections for so long, each with its own claims and value:
/// with `each` in a transaction that takes on role and claims, as a gateway must; without it they are the session's. `milliseconds` gets
/// the times of the first `most` calls.
yardstick_result yardstick_calls(
    const char *conninfo, const char *role, const char *_Nonnull const *_Nonnull claims, const char *_Nonnull const *_Nonnull values,
    const char *text, int each, int connections, double seconds, double *milliseconds, int64_t most);

/// Makes its request over and over on each of `connections` connections to a port of this machine, over HTTP/1.1 that stays open, with
/// one thread. Every answer has a length, and a status of 200 to 299. `milliseconds` gets the times of the first `most` answers.
yardstick_result yardstick_keepalive(
    uint16_t port, const char *_Nonnull const *_Nonnull requests, int connections, double seconds, double *milliseconds, int64_t most);

#pragma clang assume_nonnull end

#endif
