/* SPDX-License-Identifier: Apache-2.0
 * What a bound configuration holds. For the files of core/config only:
 * bind.c (all rows in order), row.c (one row), rope.c, watch.c, suite.c. */
#ifndef DAVIT_CONFIG_BIND_PRIVATE_H
#define DAVIT_CONFIG_BIND_PRIVATE_H

#include "config/settings_private.h"

/* Bound of L whatever a table says: per-layer arrays have this many entries at most. */
#define DAVIT_MAX_LAYERS 65536

typedef enum DavitSymbolType {
    DAVIT_SYMBOL_INT,
    DAVIT_SYMBOL_FLOAT,
    DAVIT_SYMBOL_BOOL,
    DAVIT_SYMBOL_STR,
    DAVIT_SYMBOL_LAYERS,
} DavitSymbolType;

typedef struct DavitSymbol {
    davit_config_row row; /* copy; strings borrowed from the plugin */
    DavitSymbolType type;
    bool per_layer;
    bool given;    /* the file states a value that is not null */
    bool is_null;  /* the file states null */
    bool failed;   /* refused; a record says why */
    char *key;     /* (owned) spelling that was found, or the first one */
    char *subject; /* (owned) "config.json: head_dim", for records */
    char **words;  /* (owned) STR: the bound list, or NULL */
    size_t n;      /* 1, or the layers */
    int64_t *ints; /* INT BOOL LAYERS, STR with a list: index in it; NULL otherwise */
    double *nums;  /* FLOAT */
    const char **texts; /* STR; (borrowed from settings or config->strings) */
    int seen;           /* atomic: somebody read it */
} DavitSymbol;

typedef struct DavitRope {
    char *layer_type; /* "" = all others */
    davit_rope_spec spec;
    double *factors; /* (owned) short, then long; what spec points into */
} DavitRope;

struct davit_config {
    const DavitSettings *settings; /* (borrowed) outlives the config */
    const davit_arch_iface *arch;  /* (borrowed); NULL = bare */
    GPtrArray *symbols;            /* (owned) DavitSymbol, in table order */
    GHashTable *by_name;           /* row.sym -> DavitSymbol (borrowed from symbols) */
    GPtrArray *ropes;              /* (owned) DavitRope */
    GStringChunk *strings;
    int64_t n_layers; /* symbol L, 0 = not bound yet */
    bool echo; /* an expression met a symbol that was refused: its failure is no news */
    int *rope_seen;       /* atomic, (owned): somebody read a rope */
    DavitReport *scratch; /* (owned) of one expression */
    DavitReport
        *mistakes; /* (owned) of plugins that read what their table does not have */
};

/* NULL if there is none. Does not count as read. */
DavitSymbol *davit_config_symbol(const davit_config *config, const char *sym);
void davit_symbol_mark(const DavitSymbol *symbol);

/* Evaluate one row into a new symbol and add it. Returns a status; the symbol is added,
 * as failed, in either case. */
int32_t davit_config_bind_row(davit_config *config, const davit_config_row *row,
                              DavitReport *report);

/* The arm of a default that holds for this model ("mistral:4096, 1" -> "4096").
 * Returns: (owned, g_free) trimmed text; "" = required. */
char *davit_config_pick_default(const davit_config *config, const char *text);

/* Rope of every layer type from the settings. After all rows. */
int32_t davit_config_bind_rope(davit_config *config, DavitReport *report);

/* ---- rope_dict.c: where rotary settings are stated ---- */

/* (owned) The dictionary that counts, in the spelling of transformers 5; nested ones have
 * one for each layer type. */
json_t *davit_rope_dict(const davit_config *config);
bool davit_rope_is_nested(const json_t *dict);
bool davit_rope_is_layer_type(const char *key); /* "full_attention" ... */
/* Value of a numeric symbol, @otherwise if there is none. */
double davit_rope_symbol(const davit_config *config, const char *sym, double otherwise);

/* "config.json: rope_theta" for records. (borrowed from @report) */
const char *davit_config_subject(const davit_config *config, const char *key,
                                 DavitReport *report);

#endif
