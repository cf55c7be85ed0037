#ifndef MILLRACE_CCURL_H
#define MILLRACE_CCURL_H

// curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt are variadic, which Swift cannot call: one typed way in for each
// sort of value.

#include <curl/curl.h>
#include <sys/socket.h>

static inline CURLcode millrace_set_long(CURL *_Nonnull easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode millrace_set_offset(CURL *_Nonnull easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

/// libcurl copies the text.
static inline CURLcode millrace_set_text(CURL *_Nonnull easy, CURLoption option, const char *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode millrace_set_pointer(CURL *_Nonnull easy, CURLoption option, const void *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

/// libcurl does not copy the list: it must live as long as the transfer.
static inline CURLcode millrace_set_list(CURL *_Nonnull easy, CURLoption option, struct curl_slist *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

typedef size_t (*millrace_bytes)(char *_Nullable bytes, size_t size, size_t count, void *_Nullable context);

static inline CURLcode millrace_on_bytes(CURL *_Nonnull easy, CURLoption option, millrace_bytes _Nullable callback) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode millrace_on_seek(CURL *_Nonnull easy, curl_seek_callback _Nullable callback) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}

static inline CURLcode millrace_on_open(CURL *_Nonnull easy, curl_opensocket_callback _Nullable callback) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline CURLcode millrace_on_close(CURL *_Nonnull easy, curl_closesocket_callback _Nullable callback) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback);
}

static inline CURLcode millrace_on_request(CURL *_Nonnull easy, curl_prereq_callback _Nullable callback) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode millrace_on_progress(CURL *_Nonnull easy, curl_xferinfo_callback _Nullable callback) {
    return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, callback);
}

static inline CURLcode millrace_on_talk(CURL *_Nonnull easy, curl_debug_callback _Nullable callback) {
    return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, callback);
}

static inline long millrace_get_long(CURL *_Nonnull easy, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

static inline curl_off_t millrace_get_offset(CURL *_Nonnull easy, CURLINFO info) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

static inline const char *_Nullable millrace_get_text(CURL *_Nonnull easy, CURLINFO info) {
    char *value = NULL;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : NULL;
}

static inline void *_Nullable millrace_get_context(CURL *_Nonnull easy) {
    char *value = NULL;
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? (void *)value : NULL;
}

static inline CURLMcode millrace_multi_set_long(CURLM *_Nonnull multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode millrace_multi_set_pointer(CURLM *_Nonnull multi, CURLMoption option, void *_Nullable value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode millrace_multi_on_socket(CURLM *_Nonnull multi, curl_socket_callback _Nonnull callback) {
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
}

static inline CURLMcode millrace_multi_on_timer(CURLM *_Nonnull multi, curl_multi_timer_callback _Nonnull callback) {
    return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
}

/// The next transfer that has ended, nil when there is none. A union carries the code, and the message dies with the next call.
static inline CURL *_Nullable millrace_next_ended(CURLM *_Nonnull multi, CURLcode *_Nonnull code) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        *code = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

/// The option's name was misspelt until 8.2.0 and has another one since; its number is the same.
#define MILLRACE_GO_ON_WITHOUT_REFUSED_RECIPIENTS ((CURLoption)(CURLOPTTYPE_LONG + 290))
static inline CURLcode millrace_go_on_without_refused_recipients(CURL *_Nonnull easy) {
    return curl_easy_setopt(easy, MILLRACE_GO_ON_WITHOUT_REFUSED_RECIPIENTS, 1L);
}

#endif
