#pragma once
#include <zlib.h>

// inflateInit2 is a function-like macro and does not import.
static inline int cs_inflate_start(z_stream *stream, int window_bits) { return inflateInit2(stream, window_bits); }
