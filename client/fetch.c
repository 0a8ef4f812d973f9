/* HTTP by libcurl: see the header. One easy handle per request; nothing is kept open. */
#include "client/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct exchange {
    const struct fetch_request *request;
    struct fetch_answer *answer;
    CURL *curl;
};

static int collect(struct fetch_answer *a, const char *bytes, size_t length)
{
    if (a->length + length > FETCH_MOST)
        return -EFBIG;
    char *text = realloc(a->text, a->length + length + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text + a->length, bytes, length);
    a->text = text;
    a->length += length;
    text[a->length] = 0;
    return 0;
}

static size_t on_bytes(char *bytes, size_t one, size_t length, void *context)
{
    struct exchange *x = context;
    long status = 0;
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    if (x->request->piece && status == 200) {
        x->request->piece(x->request->context, bytes, length);
        return length;
    }
    return collect(x->answer, bytes, length) ? 0 : length;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct exchange *x = context;
    return x->request->stop && x->request->stop(x->request->context);
}

static struct curl_slist *make_headers(const struct fetch_request *r)
{
    struct curl_slist *list = NULL;
    if (r->body)
        list = curl_slist_append(list, "Content-Type: application/json");
    if (r->key) {
        char line[512];
        snprintf(line, sizeof line, "Authorization: Bearer %s", r->key);
        list = curl_slist_append(list, line);
    }
    return list;
}

static void set_up(struct exchange *x, const char *url, struct curl_slist *headers)
{
    CURL *c = x->curl;
    const struct fetch_request *r = x->request;
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, x);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 5L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(r->seconds * 1000));
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->answer->reason);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    if (r->body)
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body);
}

static int result_of(CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_ABORTED_BY_CALLBACK:
        return -EINTR;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return -ECONNREFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_WRITE_ERROR:
        return -EFBIG;
    default:
        return -EIO;
    }
}

int fetch(const struct fetch_request *r, struct fetch_answer *a)
{
    char url[2048];
    *a = (struct fetch_answer){0};
    if (snprintf(url, sizeof url, "%s%s", r->url, r->path) >= (int)sizeof url)
        return -EINVAL;
    struct exchange x = {r, a, curl_easy_init()};
    if (!x.curl)
        return -ENOMEM;
    struct curl_slist *headers = make_headers(r);
    set_up(&x, url, headers);
    CURLcode code = curl_easy_perform(x.curl);
    curl_easy_getinfo(x.curl, CURLINFO_RESPONSE_CODE, &a->status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(x.curl);
    if (code != CURLE_OK && !a->reason[0])
        snprintf(a->reason, sizeof a->reason, "%s", curl_easy_strerror(code));
    return result_of(code);
}

void fetch_release(struct fetch_answer *a)
{
    free(a->text);
    *a = (struct fetch_answer){0};
}
