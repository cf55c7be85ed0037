// Flags that nobody could pass on to a package of theirs stand here.
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CYardstick.h"
#include "statements.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/// libcurl's multi handle over epoll, and nothing around it: handles that are used again as they are.
typedef struct {
    CURLM *multi;
    int epoll;
    double due;
} bare_loop;

typedef struct {
    char *bytes;
    size_t count, room;
} bare_body;

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *known) {
    (void)easy;
    bare_loop *loop = context;
    struct epoll_event event = {.data.fd = socket};
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (what == CURL_POLL_REMOVE) return epoll_ctl(loop->epoll, EPOLL_CTL_DEL, socket, &event) * 0;
    if (epoll_ctl(loop->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) != 0) return -1;
    if (!known) curl_multi_assign(loop->multi, socket, loop);
    return 0;
}

static int on_timer(CURLM *multi, long milliseconds, void *context) {
    (void)multi;
    bare_loop *loop = context;
    loop->due = milliseconds < 0 ? -1 : yardstick_now() + (double)milliseconds / 1e3;
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context) {
    bare_body *body = context;
    size_t more = size * count;
    if (body->count + more > body->room) {
        body->room = (body->count + more) * 2;
        body->bytes = realloc(body->bytes, body->room);
        if (!body->bytes) return 0;
    }
    memcpy(body->bytes + body->count, bytes, more);
    body->count += more;
    return more;
}

static CURL *handle(const char *url, int version, const char *_Nullable certificates, bare_body *body) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "yardstick");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(version == 2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    if (version == 2) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    if (certificates) curl_easy_setopt(easy, CURLOPT_CAINFO, certificates);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, body);
    return easy;
}

static void act(bare_loop *loop, int64_t *wanted, yardstick_result *result) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(loop->multi, &left))) {
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        long status = 0;
        bare_body *body = NULL;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&body);
        if (code != CURLE_OK || status != 200) {
            snprintf(result->failure, sizeof result->failure, "%s, status %ld", curl_easy_strerror(code), status);
            return;
        }
        result->jobs++;
        body->count = 0;
        curl_multi_remove_handle(loop->multi, easy);
        if (*wanted > 0) {
            --*wanted;
            curl_multi_add_handle(loop->multi, easy);
        }
    }
}

static yardstick_result repeat(
    const char *url, int version, const char *_Nullable certificates, struct curl_slist *_Nullable headers,
    const char *_Nullable body, int in_flight, int64_t requests) {
    yardstick_result result = {0};
    curl_global_init(CURL_GLOBAL_DEFAULT);
    bare_loop loop = {.multi = curl_multi_init(), .epoll = epoll_create1(EPOLL_CLOEXEC), .due = -1};
    curl_multi_setopt(loop.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(loop.multi, CURLMOPT_SOCKETDATA, &loop);
    curl_multi_setopt(loop.multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(loop.multi, CURLMOPT_TIMERDATA, &loop);
    curl_multi_setopt(loop.multi, CURLMOPT_MAXCONNECTS, 256L);
    CURL **handles = calloc((size_t)in_flight, sizeof *handles);
    bare_body *bodies = calloc((size_t)in_flight, sizeof *bodies);
    double began = yardstick_now();
    int64_t wanted = requests;
    int running = 0;
    for (int i = 0; i < in_flight && wanted > 0; i++, wanted--) {
        handles[i] = handle(url, version, certificates, &bodies[i]);
        if (headers) curl_easy_setopt(handles[i], CURLOPT_HTTPHEADER, headers);
        if (body) curl_easy_setopt(handles[i], CURLOPT_POSTFIELDS, body);
        curl_multi_add_handle(loop.multi, handles[i]);
    }
    while (result.jobs < requests && !result.failure[0]) {
        struct epoll_event events[64];
        double pause = loop.due < 0 ? 1 : loop.due - yardstick_now();
        int count = epoll_wait(loop.epoll, events, 64, pause <= 0 ? 0 : (int)(pause * 1e3) + 1);
        for (int i = 0; i < count; i++) {
            int mask = 0;
            if (events[i].events & EPOLLIN) mask |= CURL_CSELECT_IN;
            if (events[i].events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
            if (events[i].events & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
            curl_multi_socket_action(loop.multi, events[i].data.fd, mask, &running);
        }
        if (loop.due >= 0 && loop.due <= yardstick_now()) {
            loop.due = -1;
            curl_multi_socket_action(loop.multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        act(&loop, &wanted, &result);
    }
    result.seconds = yardstick_now() - began;
    for (int i = 0; i < in_flight; i++) {
        if (!handles[i]) continue;
        curl_multi_remove_handle(loop.multi, handles[i]);
        curl_easy_cleanup(handles[i]);
        free(bodies[i].bytes);
    }
    curl_multi_cleanup(loop.multi);
    close(loop.epoll);
    free(handles);
    free(bodies);
    return result;
}

yardstick_result yardstick_requests(
    const char *url, int version, const char *_Nullable certificates, int in_flight, int64_t requests) {
    return repeat(url, version, certificates, NULL, NULL, in_flight, requests);
}

yardstick_result yardstick_posts(
    const char *url, const char *_Nullable certificates, const char *headers, const char *body, int in_flight,
    int64_t requests) {
    struct curl_slist *list = NULL;
    char *copy = strdup(headers), *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) list = curl_slist_append(list, line);
    yardstick_result result = repeat(url, 2, certificates, list, body, in_flight, requests);
    curl_slist_free_all(list);
    free(copy);
    return result;
}
