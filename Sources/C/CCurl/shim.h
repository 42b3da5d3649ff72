#pragma once
#include <curl/curl.h>
// Glibc's module map leaves it out.
#include <sys/eventfd.h>

// curl_easy_setopt and curl_easy_getinfo are variadic and do not import.
static inline CURLcode cs_curl_set_long(CURL *c, CURLoption o, long v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cs_curl_set_offset(CURL *c, CURLoption o, curl_off_t v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cs_curl_set_string(CURL *c, CURLoption o, const char *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cs_curl_set_pointer(CURL *c, CURLoption o, void *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cs_curl_set_write(CURL *c, CURLoption o, curl_write_callback f) { return curl_easy_setopt(c, o, f); }
static inline CURLcode cs_curl_get_long(CURL *c, CURLINFO i, long *v) { return curl_easy_getinfo(c, i, v); }
static inline CURLcode cs_curl_get_string(CURL *c, CURLINFO i, char **v) { return curl_easy_getinfo(c, i, v); }
static inline CURLcode cs_curl_set_ssl_context(CURL *c, curl_ssl_ctx_callback f) {
    return curl_easy_setopt(c, CURLOPT_SSL_CTX_FUNCTION, f);
}
static inline CURLcode cs_curl_set_before_request(CURL *c, curl_prereq_callback f) {
    return curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, f);
}
static inline CURLcode cs_curl_set_progress(CURL *c, curl_xferinfo_callback f) {
    return curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, f);
}
static inline CURLcode cs_curl_set_read(CURL *c, curl_read_callback f) { return curl_easy_setopt(c, CURLOPT_READFUNCTION, f); }
static inline CURLcode cs_curl_set_seek(CURL *c, curl_seek_callback f) { return curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, f); }
static inline CURLMcode cs_multi_set_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode cs_multi_set_sockets(CURLM *m, void *data, curl_socket_callback f) {
    CURLMcode status = curl_multi_setopt(m, CURLMOPT_SOCKETDATA, data);
    return status == CURLM_OK ? curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, f) : status;
}
static inline CURLMcode cs_multi_set_timer(CURLM *m, void *data, curl_multi_timer_callback f) {
    CURLMcode status = curl_multi_setopt(m, CURLMOPT_TIMERDATA, data);
    return status == CURLM_OK ? curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, f) : status;
}
static const curl_socket_t cs_socket_timeout = CURL_SOCKET_TIMEOUT;
