#pragma once
#include <gio/gio.h>
#include <libsecret/secret.h>

// A schema is a struct with a fixed array in it, which Swift sees as a tuple of thirty-two.
static inline const SecretSchema *cs_secret_schema(void) {
    static const SecretSchema schema = {
        .name = "countersign.vault",
        .flags = SECRET_SCHEMA_NONE,
        .attributes = {{"service", SECRET_SCHEMA_ATTRIBUTE_STRING}, {"account", SECRET_SCHEMA_ATTRIBUTE_STRING}, {NULL, 0}},
    };
    return &schema;
}

// GLib's casts and table functions are macros.
static inline GHashTable *cs_secret_attributes(void) {
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}
static inline void cs_secret_attribute(GHashTable *t, const char *name, const char *value) {
    g_hash_table_insert(t, g_strdup(name), g_strdup(value));
}
static inline GDBusConnection *cs_secret_connection(SecretService *s) {
    return g_dbus_proxy_get_connection(G_DBUS_PROXY(s));
}
static inline SecretItem *cs_secret_item(void *object) { return SECRET_ITEM(object); }
