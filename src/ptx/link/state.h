/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the PTX linker share: the texts, their names and declarations. */
#ifndef BH_PTX_LINK_STATE_H
#define BH_PTX_LINK_STATE_H

#include <string.h>

#include "ptx/link/link.h"
#include "ptx/parse/parse.h"

typedef struct bh__link_name bh__link_name;
typedef struct bh__link_part bh__link_part;

/* Stronger ones last. */
typedef enum bh__linkage {
    LINKAGE_LOCAL,
    LINKAGE_EXTERN,
    LINKAGE_COMMON,
    LINKAGE_WEAK,
    LINKAGE_VISIBLE
} bh__linkage;

typedef enum bh__link_sort { LINK_VARIABLE, LINK_FUNCTION, LINK_KERNEL } bh__link_sort;

/* A result or parameter of a function. */
typedef struct bh__link_formal {
    uint64_t size; /* 0: not known */
    uint32_t align;
} bh__link_formal;

/* One declaration or definition at module scope. Positions are offsets in the part's text. */
typedef struct bh__link_decl {
    struct bh__link_decl *next; /* the next one of the same name in the same part */
    bh__link_part *part;
    bh__link_name *name;
    bh__linkage linkage;
    bh__link_sort sort;
    bool defined;
    bool alias;    /* defined by an .alias */
    bool unsized;  /* x[] without initial values */
    bool noreturn; /* function */
    bool managed;  /* variable */
    uint32_t line;
    /* Function: from .func to behind the parameters. Variable: from the space to the name. */
    uint32_t head, head_end, head_line;
    /* Function: from behind the head to the end of the body. Variable: from the name on. */
    uint32_t start, end;
    /* Variable: */
    uint32_t name_end;               /* behind the name and its dimensions */
    uint32_t space, space_length;    /* ".global" */
    uint32_t align_start, align_end; /* of ".align N"; equal: there is none */
    uint32_t align;
    uint64_t size;     /* 0: not known */
    uint32_t position; /* in the order of the result */
    /* Function: the results, then the parameters. */
    const bh__link_formal *formals;
    uint32_t result_count, param_count;
} bh__link_decl;

typedef struct bh__link_file {
    uint32_t number;            /* in the part */
    uint32_t start, end;        /* from the quote of its name to the end of its numbers */
    uint32_t result_number;     /* in the result */
    struct bh__link_file *next; /* in the part */
} bh__link_file;

/* A name at module scope of one part, or, with part NULL, one that all parts share. A label that
 * gets a new name has one too, without declarations. */
struct bh__link_name {
    bh__link_name *next_in_bucket;
    const char *text;
    uint32_t length, hash;
    bh__link_part *part;
    bh__link_decl *first, *last; /* its declarations, in order; shared: none */
    bh__link_decl *definition;   /* shared: the one that is used in the result */
    bool local;
    bool used;
    uint32_t use_line;
    /* The first use in the last function that names it: */
    uint32_t touched_in, touched_at, touched_line;
    /* While a function is read: the depth of the nearest scope that has a name of its own like it;
     * 0: none. */
    uint32_t hidden_depth;
    bh__link_name *shared;
    bh__link_file *file;  /* of a number of a file */
    const char *new_name; /* NULL: it keeps its own */
    /* Of a shared name: */
    bh__link_name *uses; /* the names of parts that mean it, in order */
    bh__link_name *last_use, *next_use;
    uint32_t align; /* the largest of its declarations */
    /* Of the name that decides, the shared one or the local one: */
    bool forward;   /* an initial value before it refers to it */
    bool prototype; /* it is declared apart from its definition */
};

/* `from` names `to`: in its initial value, or in its body. */
typedef struct bh__link_reference {
    bh__link_decl *from;
    bh__link_name *to;
    uint32_t line;
} bh__link_reference;

typedef struct bh__link_word {
    uint32_t start, length;
} bh__link_word;

typedef struct bh__link_range {
    uint32_t start, end, line;
    bh__link_name *name, *target; /* of an .alias */
} bh__link_range;

struct bh__link_part {
    const char *name;
    bh__ptx_module module; /* for the lexer: the text and its #line */
    bh__ptx_parser parser;
    uint32_t index;
    uint32_t version;      /* 8.5: 0x80005 */
    uint32_t target;       /* 90 */
    char suffix;           /* of the target: 'a', 'f' or 0 */
    uint32_t address_size; /* 32 if it does not say */
    uint32_t head_line;    /* of .target */
    const char *options;   /* the target's: "texmode_independent" or NULL */
    bh__link_decl **decls; /* in order */
    size_t decl_count, decl_capacity;
    bh__link_name **names;
    size_t name_count, name_capacity;
    bh__link_range *pragmas, *aliases;
    size_t pragma_count, pragma_capacity, alias_count, alias_capacity;
    bh__link_word *labels; /* of all functions */
    size_t label_count, label_capacity;
    bh__link_file *files;
    bool has_loc;
    bool renames; /* a name of it has a new one */
    bool percent; /* a name at module scope begins with %, as registers do */
};

/* What a scope of a function declares, in order, and where scopes begin. */
typedef struct bh__link_scoped {
    bool opens;          /* a scope, with this brace */
    bh__ptx_token token; /* of the brace, or of a range's name */
    uint64_t count;      /* of the registers of a range; 0: it is none */
    bh__link_name *name; /* a name of the module that is hidden */
    uint32_t before;     /* its hidden_depth outside */
} bh__link_scoped;

typedef struct bh__linker {
    bh__arena *arena;
    bh_error *error;
    bh_status status; /* BH_E_NO_HOST_MEMORY, or of a text that cannot be read */
    bh__link_part *parts;
    size_t count;
    bh__link_name **buckets; /* of all parts */
    uint32_t bucket_count, name_count;
    bh__link_reference *references; /* of initial values */
    size_t reference_count, reference_capacity;
    bh__link_reference *weak_uses; /* they count if the definition is chosen */
    size_t weak_use_count, weak_use_capacity;
    uint32_t function; /* the number of the function that is being read */
    bh__link_scoped *scoped;
    size_t scoped_count, scoped_capacity;
    bh__link_name **formals; /* what its parameters hide */
    size_t formal_count, formal_capacity;
    bh__link_name **touched; /* what it may use */
    size_t touched_count, touched_capacity;
    uint32_t marker; /* the highest number in a name that an earlier link made */
    uint64_t problems;
    /* A text that grows: the log, then the result. */
    char *log;
    size_t log_length, log_capacity;
    char *text;
    size_t length, capacity;
} bh__linker;

/* ---- link.c ---- */

/* Counts a problem, and notes it in the log. The first one becomes the error. */
void bh__link_problem(bh__linker *l, const char *fix, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool bh__link_no_memory(bh__linker *l);
/* Adds to one of the texts, and keeps a NUL behind it. */
bool bh__link_append(bh__linker *l, char **text, size_t *length, size_t *capacity,
                     const char *bytes, size_t count);
/* The name at module scope of `part`, or the shared one if `part` is NULL. NULL: there is none, or
 * no memory to `make` it. */
bh__link_name *bh__link_find(bh__linker *l, bh__link_part *part, const char *text, uint32_t length,
                             bool make);
/* The same for the number of a .file: its name is none that PTX can have. */
bh__link_name *bh__link_find_file(bh__linker *l, bh__link_part *part, uint32_t number, bool make);
void bh__link_note_use(bh__link_name *name, uint32_t line);

/* ---- read.c ---- */

/* Reads the declarations of a part, and what its functions name. */
bool bh__link_read(bh__linker *l, bh__link_part *part);

/* ---- walk.c: the names in the body of a function ---- */

typedef enum bh__link_event {
    LINK_END,     /* of the body: the parser is at the brace; or it has failed */
    LINK_NOTHING, /* not returned */
    LINK_USE,     /* a name of the module as an operand */
    LINK_OWN,     /* a name of the function that the module has too, declared or used */
    LINK_LABEL,   /* the declaration of a label; `name` is NULL if the module has none like it */
    LINK_LOC
} bh__link_event;

typedef struct bh__link_walker {
    bh__linker *l;
    bh__link_part *part;
    bh__ptx_parser *p;
    uint32_t depth;
    bool starts;    /* a statement */
    bool declares;  /* the names of this statement are declared by it */
    bool prototype; /* the names of this statement mean nothing */
    bh__ptx_token token;
    bh__link_name *name; /* at module scope, whether this word means it or not */
    bh__ptx_loc loc;
} bh__link_walker;

/* The parser must be at the brace that opens the body. */
bool bh__link_walk_begin(bh__link_walker *w, bh__linker *l, bh__link_part *part, bh__ptx_parser *p);
bh__link_event bh__link_walk(bh__link_walker *w);
/* In the current scope the function has a name of its own. `name` may be NULL. */
bool bh__link_walk_hide(bh__link_walker *w, bh__link_name *name);
/* Where the current scope begins. */
uint32_t bh__link_walk_scope(const bh__link_walker *w);

/* ---- write.c ---- */

/* Writes the result. All names are resolved. */
bool bh__link_write(bh__linker *l, char arch[16]);

#endif
