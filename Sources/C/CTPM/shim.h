#pragma once
#include <tss2/tss2_esys.h>
#include <tss2/tss2_mu.h>
#include <tss2/tss2_rc.h>
#include <tss2/tss2_tctildr.h>

#include "../functions.h"

#define CS_TPM(F)                                                                                              \
    F(Esys_Create) F(Esys_CreatePrimary) F(Esys_ECDH_ZGen) F(Esys_Finalize) F(Esys_FlushContext)               \
    F(Esys_Free) F(Esys_Initialize) F(Esys_Load) F(Esys_Sign) F(Esys_StartAuthSession)                         \
    F(Esys_TRSess_SetAttributes) F(Esys_Unseal)                                                                \
    F(Tss2_MU_TPM2B_PRIVATE_Marshal) F(Tss2_MU_TPM2B_PRIVATE_Unmarshal)                                        \
    F(Tss2_MU_TPM2B_PUBLIC_Marshal) F(Tss2_MU_TPM2B_PUBLIC_Unmarshal)                                          \
    F(Tss2_RC_Decode) F(Tss2_TctiLdr_Finalize) F(Tss2_TctiLdr_Initialize)
CS_FUNCTIONS(cs_tpm_functions, CS_TPM)

// Handles and attributes are macros with casts in them, which do not import.
static inline ESYS_TR cs_tpm_none(void) { return ESYS_TR_NONE; }
static inline ESYS_TR cs_tpm_password(void) { return ESYS_TR_PASSWORD; }
static inline ESYS_TR cs_tpm_owner(void) { return ESYS_TR_RH_OWNER; }
static inline TPMA_OBJECT cs_tpm_parent_attributes(void) {
    return TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_SENSITIVEDATAORIGIN | TPMA_OBJECT_USERWITHAUTH |
           TPMA_OBJECT_NODA | TPMA_OBJECT_RESTRICTED | TPMA_OBJECT_DECRYPT;
}
static inline TPMA_OBJECT cs_tpm_sealed_attributes(void) {
    return TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_USERWITHAUTH | TPMA_OBJECT_NODA;
}
static inline TPMA_SESSION cs_tpm_session_attributes(void) {
    return TPMA_SESSION_DECRYPT | TPMA_SESSION_ENCRYPT | TPMA_SESSION_CONTINUESESSION;
}
static inline TPMA_OBJECT cs_tpm_signing_attributes(void) {
    return TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_SENSITIVEDATAORIGIN | TPMA_OBJECT_USERWITHAUTH |
           TPMA_OBJECT_NODA | TPMA_OBJECT_SIGN_ENCRYPT;
}
static inline TPMA_OBJECT cs_tpm_agreement_attributes(void) {
    return TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_SENSITIVEDATAORIGIN | TPMA_OBJECT_USERWITHAUTH |
           TPMA_OBJECT_NODA | TPMA_OBJECT_DECRYPT;
}
// For a digest that the TPM did not compute itself. Source: TPM 2.0 Library, Part 2 section 10.7.6.
static inline TPMT_TK_HASHCHECK cs_tpm_no_ticket(void) {
    TPMT_TK_HASHCHECK ticket = {.tag = TPM2_ST_HASHCHECK, .hierarchy = TPM2_RH_NULL, .digest = {.size = 0}};
    return ticket;
}
