/* SPDX-License-Identifier: Apache-2.0
 * What users of a component worked out from its tables, kept so that they do it once.
 */
#include <pthread.h>

#include "plugin/registry.h"

static pthread_mutex_t derive_lock = PTHREAD_MUTEX_INITIALIZER;

void *davit_component_derive(DavitComponent *component, const void *key,
                             void *(*make)(const void *key), GDestroyNotify destroy)
{
    void *made;

    pthread_mutex_lock(&derive_lock);
    if (!component->derived)
        component->derived = g_hash_table_new_full(NULL, NULL, NULL, destroy);
    made = g_hash_table_lookup(component->derived, key);
    if (!made) {
        made = make(key);
        g_hash_table_insert(component->derived, (void *)(uintptr_t)key, made);
    }
    pthread_mutex_unlock(&derive_lock);
    return made;
}
