#pragma once
#include <security/pam_appl.h>

#include "../functions.h"

#define CS_PAM(F)                                                                                              \
    F(pam_acct_mgmt) F(pam_authenticate) F(pam_end) F(pam_start) F(pam_start_confdir) F(pam_strerror)
CS_FUNCTIONS(cs_pam_functions, CS_PAM)
