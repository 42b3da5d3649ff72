#pragma once
#include "../CGIO/shim.h"

// The declarations of libsecret that Sources/Vault uses, instead of <libsecret/secret.h>; see CGIO's shim.h
// for the reason and the rules. Source: libsecret 0.20.5.

typedef struct _SecretCollection SecretCollection;
typedef struct _SecretItem SecretItem;
#ifndef __G_LIB_H__  // Without a tag in the header.
typedef struct SecretSchema SecretSchema;
#endif
typedef struct _SecretService SecretService;
typedef struct _SecretValue SecretValue;

// The service. Source: libsecret/secret-service.h.
CS_CONSTANT(unsigned, SECRET_SERVICE_OPEN_SESSION, 1 << 1)
CS_CONSTANT(unsigned, SECRET_SEARCH_ALL, 1 << 1)
unsigned long secret_service_get_type(void);
SecretService *secret_service_open_sync(
    unsigned long type, const char *bus_name, unsigned flags, GCancellable *cancellable, GError **error);
GList *secret_service_search_sync(
    SecretService *service, const SecretSchema *schema, GHashTable *attributes, unsigned flags,
    GCancellable *cancellable, GError **error);

// Collections. Source: libsecret/secret-collection.h.
CS_CONSTANT(unsigned, SECRET_COLLECTION_NONE, 0)
SecretCollection *secret_collection_for_alias_sync(
    SecretService *service, const char *alias, unsigned flags, GCancellable *cancellable, GError **error);
int secret_collection_get_locked(SecretCollection *collection);

// Items. Source: libsecret/secret-item.h.
CS_CONSTANT(unsigned, SECRET_ITEM_CREATE_REPLACE, 1 << 1)
SecretItem *secret_item_create_sync(
    SecretCollection *collection, const SecretSchema *schema, GHashTable *attributes, const char *label,
    SecretValue *value, unsigned flags, GCancellable *cancellable, GError **error);
int secret_item_delete_sync(SecretItem *item, GCancellable *cancellable, GError **error);
GHashTable *secret_item_get_attributes(SecretItem *item);
int secret_item_get_locked(SecretItem *item);
SecretValue *secret_item_get_secret(SecretItem *item);
int secret_item_load_secret_sync(SecretItem *item, GCancellable *cancellable, GError **error);

// Values. Source: libsecret/secret-value.h.
SecretValue *secret_value_new(const char *bytes, long count, const char *content_type);
const char *secret_value_get(SecretValue *value, unsigned long *count);
void secret_value_unref(void *value);

// Errors. Source: libsecret/secret-types.h.
CS_CONSTANT(int, SECRET_ERROR_IS_LOCKED, 2)
unsigned secret_error_get_quark(void);

// Schemas. Source: libsecret/secret-schema.h.
CS_CONSTANT(unsigned, SECRET_SCHEMA_NONE, 0)
CS_CONSTANT(int, SECRET_SCHEMA_ATTRIBUTE_STRING, 0)
SecretSchema *secret_schema_new(const char *name, unsigned flags, ...) __attribute__((sentinel));

#define CS_SECRET(F)                                                                                           \
    F(secret_collection_for_alias_sync) F(secret_collection_get_locked) F(secret_error_get_quark)              \
    F(secret_item_create_sync) F(secret_item_delete_sync) F(secret_item_get_attributes)                        \
    F(secret_item_get_locked) F(secret_item_get_secret) F(secret_item_load_secret_sync) F(secret_schema_new)   \
    F(secret_service_get_type) F(secret_service_open_sync) F(secret_service_search_sync) F(secret_value_get)   \
    F(secret_value_new) F(secret_value_unref)
CS_FUNCTIONS(cs_secret_functions, CS_SECRET)

// The schema of the vault's items. Swift does not import variadic functions.
static inline SecretSchema *cs_secret_schema_new(const cs_secret_functions *functions) {
    return functions->secret_schema_new(
        "countersign.vault", SECRET_SCHEMA_NONE, "service", SECRET_SCHEMA_ATTRIBUTE_STRING, "account",
        SECRET_SCHEMA_ATTRIBUTE_STRING, (void *)0);
}
