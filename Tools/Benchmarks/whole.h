/* What load.c and backend.c both compute to tell whether a request arrived whole: a checksum of its body, and one of
 * its method, target and the fields that every proxy must forward as they were sent. The backend's answer has both,
 * and the client compares them with its own.
 */
#include <stdint.h>
#include <string.h>

/* The start of an answer's body; the rest is `x`. The request's number, its head's checksum and its body's. */
#define ANSWER_START "{\"n\":%08u,\"head\":\"%016llx\",\"body\":\"%016llx\",\"fill\":\""
#define ANSWER_START_LENGTH 74
#define ANSWER_END "\"}"
#define ANSWER_END_LENGTH 2
#define ANSWER_FILL 'x'
#define LEAST_ANSWER (ANSWER_START_LENGTH + ANSWER_END_LENGTH)
#define MOST_ANSWER (1 << 20)

/* The fields in the checksum, in this order. Those of the signature and of the hop are not among them. */
static const char *const forwarded_fields[] = {
    "user-agent", "accept", "accept-encoding", "accept-language",
    "content-type", "content-length", "content-digest", "idempotency-key",
};
#define CONTENT_LENGTH 5
#define FORWARDED_FIELDS (int)(sizeof forwarded_fields / sizeof *forwarded_fields)

static inline uint64_t mixed(uint64_t sum, uint64_t word) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

/* Each byte and its place count. Four sums at once, because a multiplication waits for the one before. */
static inline uint64_t checksum(uint64_t seed, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint64_t sums[4] = {seed, seed + 1, seed + 2, seed + 3}, words[4];
    size_t left = count;
    for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        for (int i = 0; i < 4; i++) sums[i] = mixed(sums[i], words[i]);
    }
    memset(words, 0, sizeof words);
    memcpy(words, at, left);
    for (int i = 0; i < 4; i++) sums[i] = mixed(sums[i], words[i]);
    return mixed(mixed(mixed(mixed(count, sums[0]), sums[1]), sums[2]), sums[3]);
}

/* A part of a head: `part` is its place in the list, so that a value in another field counts. */
static inline uint64_t with_part(uint64_t sum, int part, const char *value, size_t count) {
    return checksum(mixed(sum, (uint64_t)part), value, count);
}
