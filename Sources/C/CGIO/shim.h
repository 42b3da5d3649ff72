#pragma once
#include <stddef.h>

#include "../functions.h"

// The declarations of GLib, GObject and GIO that Sources/Vault uses, instead of <gio/gio.h>, whose .pc file
// has a flag that SwiftPM prohibits (docs/decisions/0053-glib-declarations.md). Types that the sources only
// pass on stay incomplete. A parameter of an enumeration has the integer type that the ABI gives the
// enumeration. Source: GLib 2.74.
//
// script/lint compiles this file after GLib's own headers. The compiler then compares each function and type
// with theirs, and the macros compare each constant and field.
#ifdef __G_LIB_H__
#define CS_CONSTANT(type, name, value) _Static_assert((name) == (value), #name);
#define CS_STRUCT(name) struct cs_##name
#define CS_FIELD(name, field)                                                                                  \
    _Static_assert(                                                                                            \
        offsetof(struct name, field) == offsetof(struct cs_##name, field) &&                                   \
            __builtin_types_compatible_p(                                                                      \
                __typeof__(((struct name *)0)->field), __typeof__(((struct cs_##name *)0)->field)),            \
        #name "." #field);
#else
#define CS_CONSTANT(type, name, value) static const type name = value;
#define CS_STRUCT(name) struct name
#define CS_FIELD(name, field)
#endif

typedef struct _GCancellable GCancellable;
typedef struct _GDBusConnection GDBusConnection;
typedef struct _GError GError;
typedef struct _GMainContext GMainContext;
typedef struct _GVariant GVariant;
typedef struct _GVariantType GVariantType;

typedef void (*GDestroyNotify)(void *data);

// Errors. Source: glib/gerror.h.
CS_STRUCT(_GError) {
    unsigned domain;
    int code;
    char *message;
};
CS_FIELD(_GError, domain)
CS_FIELD(_GError, code)
CS_FIELD(_GError, message)
void g_error_free(GError *error);

// Objects. Source: gobject/gobject.h. The name is in brackets because it is a macro in some releases.
void (g_object_unref)(void *object);

// Variants. Source: glib/gvariant.h.
GVariant *g_variant_new_string(const char *text);
GVariant *g_variant_new_tuple(GVariant *const *children, unsigned long count);
unsigned long g_variant_n_children(GVariant *value);
GVariant *g_variant_get_child_value(GVariant *value, unsigned long index);
const char *g_variant_get_type_string(GVariant *value);
const char *g_variant_get_string(GVariant *value, unsigned long *length);
int g_variant_get_boolean(GVariant *value);
void g_variant_unref(GVariant *value);

// The main loop. Source: glib/gmain.h.
GMainContext *g_main_context_new(void);
void g_main_context_push_thread_default(GMainContext *context);
void g_main_context_pop_thread_default(GMainContext *context);
int g_main_context_iteration(GMainContext *context, int may_block);
void g_main_context_unref(GMainContext *context);

// D-Bus. Source: gio/gioenums.h, gdbusconnection.h.
CS_CONSTANT(int, G_BUS_TYPE_SYSTEM, 1)
CS_CONSTANT(unsigned, G_DBUS_CALL_FLAGS_NONE, 0)
CS_CONSTANT(unsigned, G_DBUS_SIGNAL_FLAGS_NONE, 0)
typedef void (*GDBusSignalCallback)(
    GDBusConnection *connection, const char *sender, const char *path, const char *interface,
    const char *signal, GVariant *parameters, void *data);
GDBusConnection *g_bus_get_sync(int bus, GCancellable *cancellable, GError **error);
void g_dbus_connection_set_exit_on_close(GDBusConnection *connection, int exits);
GVariant *g_dbus_connection_call_sync(
    GDBusConnection *connection, const char *service, const char *path, const char *interface,
    const char *method, GVariant *parameters, const GVariantType *reply, unsigned flags, int milliseconds,
    GCancellable *cancellable, GError **error);
unsigned g_dbus_connection_signal_subscribe(
    GDBusConnection *connection, const char *sender, const char *interface, const char *signal,
    const char *path, const char *first_argument, unsigned flags, GDBusSignalCallback callback, void *data,
    GDestroyNotify free_data);
void g_dbus_connection_signal_unsubscribe(GDBusConnection *connection, unsigned subscription);

#define CS_GIO(F)                                                                                              \
    F(g_bus_get_sync) F(g_dbus_connection_call_sync) F(g_dbus_connection_set_exit_on_close)                    \
    F(g_dbus_connection_signal_subscribe) F(g_dbus_connection_signal_unsubscribe) F(g_error_free)              \
    F(g_main_context_iteration) F(g_main_context_new) F(g_main_context_pop_thread_default)                     \
    F(g_main_context_push_thread_default) F(g_main_context_unref) F(g_object_unref) F(g_variant_get_boolean)   \
    F(g_variant_get_child_value) F(g_variant_get_string) F(g_variant_get_type_string)                          \
    F(g_variant_n_children) F(g_variant_new_string) F(g_variant_new_tuple) F(g_variant_unref)
CS_FUNCTIONS(cs_gio_functions, CS_GIO)
