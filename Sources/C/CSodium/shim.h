#pragma once
#include <sodium.h>
#include <sys/prctl.h>

// A variadic function does not import into Swift.
static inline int cs_prctl_set_dumpable(unsigned long value) { return prctl(PR_SET_DUMPABLE, value, 0, 0, 0); }
