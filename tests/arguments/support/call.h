/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the public functions as data: generate.py writes the tables, fill.c makes arguments,
 * good and bad ones, world.c has the objects that good arguments name. */
#ifndef TESTS_ARGUMENTS_CALL_H
#define TESTS_ARGUMENTS_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"
#include "bulkhead_cuda.h"

typedef enum sort {
    NUMBER, /* any integer */
    SMALL,  /* one of which large values are legal and would last */
    COUNT,  /* of the elements behind the pointer before it: the library must believe it */
    HANDLE, /* `extra` is its type's name */
    STRUCT, /* by value; `extra` is its layout. The same for pointers to one: */
    IN_STRUCT,
    OUT_STRUCT,
    IN_DATA,  /* bytes to be read */
    OUT_DATA, /* bytes to be written, or memory that a call gave out */
    OUT_WORD, /* a pointer to a number, a pointer or two descriptors to be filled in */
    IN_TEXT,
    OUT_TEXT,
    IN_NUMBERS, /* an array of them */
    IN_TEXTS,   /* an array of strings, as long as the COUNT behind it says */
    IN_FDS,     /* the two descriptors of a shared buffer */
    CALLBACK,
    CONTEXT, /* for a callback */
    BYTES,   /* an array inside a struct */
    ARGUMENT /* the union of a bh_arg */
} sort;

typedef struct slot {
    const char *name;
    sort sort;
    size_t offset, size; /* in the struct; 0 for parameters */
    uint64_t good;
    const void *extra;
    void (*callback)(void);
} slot;

typedef struct layout {
    const char *name;
    size_t bytes;
    bool sized; /* begins with its own size */
    const slot *slots;
    size_t count;
} layout;

typedef struct function {
    const char *name;
    bh_status (*call)(void *const *arguments);
    const slot *slots;
    unsigned count;
    bool tells; /* returns a bh_status */
} function;

extern const function functions[];
extern const unsigned function_count;
extern const char *const unknown_functions[]; /* reasons; the last is NULL */

/* ---- world.c ---- */

enum { IMAGE_BYTES = 160 }; /* of the good module image */

typedef enum life { GOOD, CLOSED, FOREIGN } life;

void world_open(void);
/* The device under test has a driver, which some calls load into this process. */
bool world_has_driver(void);
void world_close(void);
/* The same with one device opened anew, where all three take too long. */
void world_reopen(void);
/* All objects anew, on the same devices. */
void world_renew(void);
/* Ends the test if it does not know this kind of handle. */
uint64_t world_handle(const char *type, life which);
/* Closes what a call has made. Returns false if this is no kind of handle. */
bool world_release(const char *type, const void *made);
/* Sets the fields of a struct that are not just zero in a good one. */
void world_struct(const char *type, void *out);
/* Memory of the library's own for parameters named so; NULL: any will do. */
void *world_memory(const char *called, const char *parameter);
const int *world_descriptors(void);
const char *world_text(const char *called, const char *parameter);
/* The device computes, has lost no worker (unless it may), and holds what it held at first. */
bool world_sound(bool may_lose, char *why, size_t size);

/* ---- fill.c ---- */

enum { MAX_ARGUMENTS = 12, VALUE_BYTES = 64, TEXT_BYTES = 4000, OUT_BYTES = 1 << 17 };

/* The arguments of one call: their values, and the call as C. */
typedef struct call {
    const function *function;
    unsigned char values[MAX_ARGUMENTS][VALUE_BYTES] __attribute__((aligned(16)));
    void *pointers[MAX_ARGUMENTS];
    unsigned char *written[MAX_ARGUMENTS]; /* memory for output; NULL: none */
    char text[TEXT_BYTES];
} call;

/* How many values there are for a parameter: the first is a good one. */
unsigned variants(const slot *of);
/* Makes the arguments, parameter by parameter. */
void call_make(call *self, const function *what, const unsigned *variant);
/* Whether output memory is as call_make left it. */
bool call_untouched(const call *self, unsigned argument);

#endif
