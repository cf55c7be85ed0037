// Flags that nobody could pass on to a package of theirs stand here.
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CYardstick.h"
#include "statements.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { most_answer = 65536 };

/// One connection that stays open: a request, its whole answer, the next request.
typedef struct {
    const char *request;
    size_t length, sent, got;
    double began;
    char answer[most_answer + 1];
} line;

static int reach(uint16_t port) {
    int one = 1, descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (descriptor < 0) return -1;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
        close(descriptor);
        return -1;
    }
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return descriptor;
}

/// The size of the whole answer; 0 while its head is not there.
static size_t whole(const line *one) {
    const char *end = strstr(one->answer, "\r\n\r\n");
    if (!end) return 0;
    size_t head = (size_t)(end - one->answer) + 4;
    for (const char *at = strstr(one->answer, "\r\n"); at && at < end; at = strstr(at + 2, "\r\n")) {
        if (strncasecmp(at + 2, "content-length:", 15) == 0) return head + strtoul(at + 17, NULL, 10);
    }
    return head;
}

/// Sends what is left of the request. False: the connection is lost.
static int push(line *one, int descriptor) {
    ssize_t count = send(descriptor, one->request + one->sent, one->length - one->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    one->sent += (size_t)count;
    return 1;
}

static int begin(line *one, int descriptor) {
    one->sent = one->got = 0;
    one->answer[0] = 0;
    one->began = yardstick_now();
    return push(one, descriptor);
}

/// 1: the answer is there. 0: not yet. -1: it is not a good one, or the connection is lost.
static int pull(line *one, int descriptor) {
    ssize_t count = recv(descriptor, one->answer + one->got, most_answer - one->got, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (count == 0) return -1;
    one->got += (size_t)count;
    one->answer[one->got] = 0;
    size_t size = whole(one);
    if (!size || one->got < size) return one->got < most_answer ? 0 : -1;
    return strncmp(one->answer, "HTTP/1.1 2", 10) == 0 ? 1 : -1;
}

yardstick_result yardstick_keepalive(
    uint16_t port, const char *const *requests, int connections, double seconds, double *milliseconds, int64_t most) {
    yardstick_result result = {0};
    line *lines = calloc((size_t)connections, sizeof *lines);
    struct pollfd *polls = calloc((size_t)connections, sizeof *polls);
    if (!lines || !polls) snprintf(result.failure, sizeof result.failure, "there is no memory");
    for (int i = 0; i < connections && !result.failure[0]; i++) {
        lines[i].request = requests[i];
        lines[i].length = strlen(requests[i]);
        polls[i] = (struct pollfd){.fd = reach(port), .events = POLLIN};
        if (polls[i].fd < 0) snprintf(result.failure, sizeof result.failure, "nobody listens on port %d", port);
    }
    double start = yardstick_now(), until = start + seconds;
    int open = 0;
    for (int i = 0; i < connections && !result.failure[0]; i++) open += begin(&lines[i], polls[i].fd);
    while (open > 0 && !result.failure[0]) {
        for (int i = 0; i < connections; i++) polls[i].events = lines[i].sent < lines[i].length ? POLLIN | POLLOUT : POLLIN;
        if (poll(polls, (nfds_t)connections, 10000) <= 0) {
            snprintf(result.failure, sizeof result.failure, "no answer came for ten seconds");
            break;
        }
        double now = yardstick_now();
        for (int i = 0; i < connections; i++) {
            line *one = &lines[i];
            if (!polls[i].revents || polls[i].fd < 0) continue;
            int had = one->sent < one->length && !(polls[i].revents & POLLIN) ? (push(one, polls[i].fd) ? 0 : -1) : pull(one, polls[i].fd);
            if (had == 0) continue;
            if (had < 0) {
                snprintf(result.failure, sizeof result.failure, "%s", one->got ? one->answer : "the connection was closed");
                break;
            }
            if (result.jobs < most) milliseconds[result.jobs] = (now - one->began) * 1000;
            result.jobs++;
            if (now < until && begin(one, polls[i].fd)) continue;
            close(polls[i].fd);
            polls[i].fd = -1;
            open--;
        }
    }
    result.seconds = yardstick_now() - start;
    for (int i = 0; polls && i < connections; i++) {
        if (polls[i].fd > 0) close(polls[i].fd);
    }
    free(lines);
    free(polls);
    return result;
}
