#pragma once
#include <dlfcn.h>
#include <stddef.h>

// Functions of libraries that are loaded when they are first used, and that no program is linked with
// (docs/decisions/0063-libraries-loaded-when-used.md). A shim lists them in a macro, `F(name)` for each;
// CS_FUNCTIONS(type, list) then defines a struct with a pointer to each, and `type_resolve`, which finds each
// in the first of some libraries that has it, and returns NULL or the name of one that none has. The pointers
// have the types of the declarations, so that the compiler checks calls as it checks those of linked
// functions. They are never null, of which the shims say nothing about their other pointers.
#pragma clang diagnostic ignored "-Wnullability-completeness"
#define CS_FUNCTIONS(type, list)                                                                               \
    typedef struct {                                                                                           \
        list(CS_POINTER)                                                                                       \
    } type;                                                                                                    \
    static inline const char *type##_resolve(                                                                  \
        void *const *libraries, long count, type *functions) {                                                 \
        list(CS_RESOLVE) return NULL;                                                                          \
    }
#define CS_POINTER(name) __typeof__(name) *_Nonnull name;
#define CS_RESOLVE(name)                                                                                       \
    {                                                                                                          \
        void *symbol = NULL;                                                                                   \
        for (long index = 0; !symbol && index < count; index++) symbol = dlsym(libraries[index], #name);       \
        if (!symbol) return #name;                                                                             \
        *(void **)&functions->name = symbol;                                                                   \
    }
