/* SPDX-License-Identifier: Apache-2.0
 * Loading one file: dlopen, entry, validation, start; and create of its components. */
#include "plugin/load.h"

#include <dlfcn.h>
#include <string.h>

#include "plugin/dl_error.h"
#include "plugin/elf.h"
#include "plugin/helper.h"
#include "plugin/policy.h"
#include "plugin/process_state.h"
#include "plugin/running.h"
#include "plugin/validate.h"

/* The file that passed the gates is the file that is loaded: same inode, size and time.
 */
static int32_t check_unchanged(DavitPluginFile *file)
{
    const struct stat *seen = &file->load->seen;
    struct stat now;

    if (stat(file->load->real, &now) == 0 && now.st_dev == seen->st_dev &&
        now.st_ino == seen->st_ino && now.st_size == seen->st_size &&
        now.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec)
        return DAVIT_OK;
    return davit_report_add(
        file->records,
        &(DavitFinding){.code = DAVIT_R_FILE_CHANGED,
                        .status = DAVIT_E_IO,
                        .stage = "dlopen",
                        .subject = file->path,
                        .expected = "the file that was checked",
                        .found = "another size, time or inode",
                        .message = "the plugin changed after it was checked",
                        .hint = "run davit again"});
}

/* NULL with a record. The handle is dropped on purpose: the object stays for good. */
static davit_entry_v1_fn open_entry(DavitPluginFile *file)
{
    void *handle = dlopen(file->load->real, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    davit_entry_v1_fn entry = NULL;
    void *symbol;

    if (!handle) {
        davit_dl_error(file->load->real, dlerror(), file->records);
        return NULL;
    }
    symbol = dlsym(handle, DAVIT_ENTRY_SYMBOL);
    if (!symbol)
        davit_report_add(file->records, &(DavitFinding){.code = DAVIT_R_NO_ENTRY,
                                                        .status = DAVIT_E_UNSUPPORTED,
                                                        .stage = "dlopen",
                                                        .subject = file->path,
                                                        .expected = DAVIT_ENTRY_SYMBOL});
    memcpy(&entry, &symbol, sizeof entry); /* C has no cast from void * to function */
    return entry;
}

static const davit_bundle *call_entry(DavitPluginFile *file, davit_entry_v1_fn entry)
{
    const davit_hello hello = {
        .struct_size = DAVIT_END(davit_hello, host_version),
        .abi_major = DAVIT_ABI_MAJOR,
        .abi_minor = DAVIT_ABI_MINOR,
        .abi_minor_oldest = 0,
        .flags = file->load->registry->in_helper ? DAVIT_HELLO_IN_HELPER : 0,
        .host_name = "davit",
        .host_version = DAVIT_VERSION,
    };
    const davit_bundle *bundle;
    DavitSink sink;

    davit_sink_init(&sink, file->records, file->bundle_id, "entry");
    davit_running_set(file->bundle_id, "entry");
    bundle = entry(&hello, &sink.abi);
    davit_sink_done(&sink, bundle ? DAVIT_OK : DAVIT_E_UNSUPPORTED);
    return bundle;
}

/* dlopen and entry between two snapshots of process state. */
static const davit_bundle *enter(DavitPluginFile *file)
{
    g_autoptr(DavitProcessState) before = davit_process_state_take();
    const DavitRunning outside = davit_running_set(file->bundle_id, "dlopen");
    davit_entry_v1_fn entry = open_entry(file);
    const davit_bundle *bundle = entry ? call_entry(file, entry) : NULL;

    file->load->entry = entry;
    davit_running_back(outside);
    davit_process_state_restore(before, file->bundle_id, "load", file->records);
    return bundle;
}

/* @what: "start" or "create". After the plugin's own records, so that the reason is
 * first. */
static int32_t failed(DavitReport *records, const char *who, const char *what,
                      int32_t status)
{
    return davit_report_add(
        records,
        &(DavitFinding){.code = DAVIT_R_START_FAILED,
                        .status = status,
                        .stage = what,
                        .subject = who,
                        .found = davit_report_text(records, "status %d", status),
                        .message = davit_report_text(records, "%s failed", what),
                        .expected = "status 0",
                        .hint = "the plugin's own record before this one says why; if there "
                                "is none, tell its author"});
}

static int32_t start(DavitPluginFile *file)
{
    DavitFileLoad *load = file->load;
    g_autoptr(DavitProcessState) before = NULL;
    DavitSink sink;
    int32_t status = DAVIT_OK;

    if (load->bundle.start) {
        const DavitRunning outside = davit_running_set(file->bundle_id, "start");

        before = davit_process_state_take();
        davit_sink_init(&sink, file->records, file->bundle_id, "start");
        status = davit_sink_done(
            &sink, load->bundle.start(davit_host_table(), &load->bundle_ctx, &sink.abi));
        davit_running_back(outside);
        davit_process_state_restore(before, file->bundle_id, "start", file->records);
    }
    if (status < 0)
        return failed(file->records, file->bundle_id, "start", status);
    g_ptr_array_add(load->registry->started, file);
    return DAVIT_OK;
}

static int32_t load_gates(DavitPluginFile *file)
{
    const davit_bundle *bundle;
    DavitRunning outside;
    int32_t status = check_unchanged(file);

    if (status == DAVIT_OK && !file->load->is_builtin)
        status = davit_policy_hash(
            davit_prefs_lock(file->load->registry->prefs, file->bundle_id), file->load->real,
            "the lock file", file->records);
    if (status == DAVIT_OK)
        status = davit_policy_hash(file->load->sha256, file->load->real, file->sidecar,
                                   file->records);
    if (status == DAVIT_OK && !file->load->registry->in_helper)
        status = davit_helper_probe(file, file->records);
    if (status)
        return status;
    bundle = enter(file);
    if (!bundle)
        return DAVIT_E_UNSUPPORTED;
    status = check_unchanged(file); /* what was loaded is what was checked */
    if (status)
        return status;
    davit_needed_clashes(file->needed, file->runpath, file->load->real, file->records);
    outside = davit_running_set(file->bundle_id, "validate");
    status = davit_validate_bundle(file, bundle);
    davit_running_back(outside);
    return status ? status : start(file);
}

static void refuse_components(DavitPluginFile *file)
{
    const GPtrArray *all = file->load->components;

    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (davit_component_usable(c))
            c->state = DAVIT_STATE_REFUSED;
    }
}

int32_t davit_load_file(DavitPluginFile *file)
{
    DavitFileLoad *load = file->load;

    if (load->tried)
        return load->status;
    load->tried = true;
    load->status = load_gates(file);
    if (load->status) {
        file->state = DAVIT_STATE_REFUSED;
        refuse_components(file);
    }
    return load->status;
}

static int32_t create(DavitComponent *c)
{
    DavitComponentLoad *load = c->load;
    const davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component),
                                .host = davit_host_table(),
                                .component = c->id};
    DavitRunning outside;
    DavitSink sink;
    int32_t status;

    if (!load->desc.create)
        return DAVIT_OK;
    davit_sink_init(&sink, c->records, c->id, "create");
    outside = davit_running_set(c->id, "create");
    status = davit_sink_done(
        &sink, load->desc.create(c->file->load->bundle_ctx, &in, &load->self, &sink.abi));
    davit_running_back(outside);
    if (status < 0) {
        c->state = DAVIT_STATE_REFUSED;
        return failed(c->records, c->id, "create", status);
    }
    g_ptr_array_add(c->file->load->registry->created, c);
    return DAVIT_OK;
}

int32_t davit_load_component(DavitComponent *component)
{
    DavitComponentLoad *load = component->load;

    if (load->tried)
        return load->status;
    load->tried = true;
    load->status = DAVIT_E_UNSUPPORTED;
    if (!davit_component_usable(component))
        return load->status;
    load->status = davit_load_file(component->file);
    if (load->status == DAVIT_OK)
        load->status = load->has_desc ? create(component) : DAVIT_E_UNSUPPORTED;
    return load->status;
}

void davit_load_shutdown(DavitRegistry *registry)
{
    const DavitRunning outside = davit_running_get();

    for (size_t i = registry->created->len; i-- > 0;) {
        const DavitComponent *c = g_ptr_array_index(registry->created, i);

        davit_running_set(c->id, "destroy");
        c->load->desc.destroy(c->load->self);
    }
    for (size_t i = registry->started->len; i-- > 0;) {
        const DavitPluginFile *file = g_ptr_array_index(registry->started, i);

        davit_running_set(file->bundle_id, "quiesce");
        if (file->load->bundle.quiesce)
            file->load->bundle.quiesce(file->load->bundle_ctx);
    }
    davit_running_back(outside);
}
