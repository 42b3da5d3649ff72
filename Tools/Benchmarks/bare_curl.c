/* What libcurl itself takes of the processor for a request, as a program in C would use it: one easy handle a place, kept and used again,
   nothing looked at but the status. `bare_curl URL REQUESTS PLACES`: with one place curl_easy_perform, with more curl_multi_poll.
   Prints microseconds of processor time a request. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static size_t drop(char *bytes, size_t size, size_t count, void *seen) {
    (void)bytes;
    *(size_t *)seen += size * count;
    return size * count;
}

static double used(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static size_t seen;

static CURL *prepared(const char *url) {
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &seen);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    return curl;
}

static void check(CURL *curl, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK || status != 200) {
        fprintf(stderr, "bare_curl: %s, status %ld\n", curl_easy_strerror(code), status);
        exit(1);
    }
}

static void one_by_one(const char *url, int requests) {
    CURL *curl = prepared(url);
    for (int i = 0; i < requests; i++) check(curl, curl_easy_perform(curl));
    curl_easy_cleanup(curl);
}

static void side_by_side(const char *url, int requests, int places) {
    CURLM *multi = curl_multi_init();
    int begun = 0, done = 0;
    for (; begun < places && begun < requests; begun++) curl_multi_add_handle(multi, prepared(url));
    while (done < requests) {
        int running, left;
        curl_multi_perform(multi, &running);
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &left))) {
            CURL *curl = message->easy_handle;
            check(curl, message->data.result);
            curl_multi_remove_handle(multi, curl);
            done++;
            if (begun++ < requests) curl_multi_add_handle(multi, curl);
            else curl_easy_cleanup(curl);
        }
        if (done < requests) curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    curl_multi_cleanup(multi);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    int requests = atoi(arguments[2]), places = atoi(arguments[3]);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    one_by_one(arguments[1], 200);
    double before = used();
    if (places == 1) one_by_one(arguments[1], requests);
    else side_by_side(arguments[1], requests, places);
    printf("%.3f\n", (used() - before) / requests);
    return 0;
}
