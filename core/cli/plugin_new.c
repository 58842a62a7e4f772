/* SPDX-License-Identifier: Apache-2.0
 * davit plugin new: write a plugin project that compiles, passes its tests and is loaded. The
 * folder appears whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "cli/commands.h"
#include "cli/plugin_templates.h"

#define KINDS    "format|arch|quant|tokenizer|kernels"
#define MAX_NAME 32

static const DavitFlag flags[] = {
    {"id", 0, DAVIT_FLAG_TEXT, "ID", "component id in reverse DNS, org.example.KIND.NAME if absent",
     NULL, NULL, false},
    {"dir", 0, DAVIT_FLAG_TEXT, "DIR", "make the folder NAME in this directory", NULL, ".", false},
    {0},
};
static const char *const examples[] = {
    "davit plugin new arch mymodel --id org.me.arch.mymodel", "an architecture in ./mymodel",
    "davit plugin new tokenizer mytok && cd mytok && cmake -S . -B build && cmake --build build",
    "write a tokenizer family and build it", NULL};

/* What the project is called. */
typedef struct Project {
    const char *kind, *name;
    char *id, *class_name; /* (owned) */
    char *target;          /* (owned) path of the folder */
} Project;

/* ---- checking ---- */

static int wrong(DavitCall *call, const char *subject, const char *expected, const char *found,
                 const char *message)
{
    davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                                   .status = DAVIT_E_USAGE,
                                                   .stage = "options",
                                                   .subject = subject,
                                                   .expected = expected,
                                                   .found = found,
                                                   .message = message});
    return DAVIT_EXIT_USAGE;
}

/* A C identifier, a file name and a CMake target at once. */
static bool is_name(const char *name)
{
    static const char *const targets[] = {"all",  "clean",   "help",         "install",
                                          "test", "package", "edit_cache",   "rebuild_cache",
                                          "none", "depend",  "package_source", NULL};
    const size_t n = strlen(name);

    return g_ascii_islower(name[0]) && n <= MAX_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n &&
           !g_strv_contains(targets, name);
}

/* Two or more parts of letters, digits, '-' and '_', joined by dots. */
static bool is_id(const char *id)
{
    g_auto(GStrv) parts = g_strsplit(id, ".", -1);

    for (char **p = parts; *p; p++)
        if (!g_ascii_isalnum((*p)[0]) ||
            strspn(*p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
                strlen(*p))
            return false;
    return g_strv_length(parts) >= 2 && strlen(id) <= 128;
}

static int check(DavitCall *call, const Project *project)
{
    g_auto(GStrv) kinds = g_strsplit(KINDS, "|", -1);

    if (!g_strv_contains((const char *const *)kinds, project->kind))
        return wrong(call, "KIND", KINDS, project->kind, "there is no template for this kind");
    if (!is_name(project->name))
        return wrong(call, "NAME",
                     "at most 32 of a-z, 0-9 and _, a letter first, no name of a build target",
                     project->name, "the name cannot be used in C, CMake and file names");
    if (!is_id(project->id))
        return wrong(call, "--id", "org.me.KIND.NAME", project->id,
                     "the id is not in reverse DNS");
    if (g_str_has_prefix(project->id, "org.davit."))
        return wrong(call, "--id", "an id below a name of yours", project->id,
                     "ids that begin with org.davit. belong to davit's own plugins");
    if (g_file_test(project->target, G_FILE_TEST_EXISTS | G_FILE_TEST_IS_SYMLINK))
        return wrong(call, project->target, "a name that is free", "it exists",
                     "the folder is not made over something else");
    return DAVIT_EXIT_OK;
}

/* ---- writing ---- */

static int failed(DavitCall *call, const char *path, const char *why)
{
    davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                                   .status = DAVIT_E_IO,
                                                   .stage = "write",
                                                   .subject = path,
                                                   .message = why});
    return DAVIT_EXIT_FAILED;
}

/* (owned) "my_model" -> "MyModelForCausalLM" */
static char *class_of(const char *name)
{
    GString *text = g_string_new(NULL);
    bool first = true;

    for (; *name; name++) {
        if (*name != '_')
            g_string_append_c(text, first ? g_ascii_toupper(*name) : *name);
        first = *name == '_';
    }
    return g_string_free(g_string_append(text, "ForCausalLM"), FALSE);
}

/* (owned) */
static char *fill_in(const Project *project, const char *template)
{
    GString *text = g_string_new(template);

    g_string_replace(text, "@NAME@", project->name, 0);
    g_string_replace(text, "@ID@", project->id, 0);
    g_string_replace(text, "@CLASS@", project->class_name, 0);
    return g_string_free(text, FALSE);
}

/* (owned) file name -> GString text, of this project's kind, in the table's order of @names. */
static GHashTable *make_files(const Project *project, GPtrArray *names)
{
    GHashTable *files = g_hash_table_new(g_str_hash, g_str_equal);

    for (const DavitTemplate *row = davit_templates; row->kind; row++) {
        if (strcmp(row->kind, "common") != 0 && strcmp(row->kind, project->kind) != 0)
            continue;
        g_autofree char *name = fill_in(project, row->file);
        g_autofree char *text = fill_in(project, row->text);
        GString *so_far = g_hash_table_lookup(files, name);
        if (!so_far) {
            char *key = g_steal_pointer(&name);
            so_far = g_string_new(NULL);
            g_ptr_array_add(names, key);
            g_hash_table_insert(files, key, so_far);
        }
        g_string_append(so_far, text);
    }
    return files;
}

static int write_files(DavitCall *call, const char *dir, GHashTable *files, const GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        const GString *text = g_hash_table_lookup(files, g_ptr_array_index(names, i));
        g_autofree char *path = g_build_filename(dir, g_ptr_array_index(names, i), NULL);
        g_autoptr(GError) error = NULL;

        if (!g_file_set_contents_full(path, text->str, (gssize)text->len,
                                      G_FILE_SET_CONTENTS_NONE, 0666, &error))
            return failed(call, path, error->message);
    }
    return DAVIT_EXIT_OK;
}

/* Give @from its name, unless something has taken the name meanwhile. */
static int put_in_place(DavitCall *call, const char *from, const Project *project)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, project->target, RENAME_NOREPLACE) == 0)
        return DAVIT_EXIT_OK;
    if (errno == EEXIST)
        return wrong(call, project->target, "a name that is free", "it exists",
                     "the folder is not made over something else");
    /* a file system without that call; rename fails on a folder that has anything in it */
    if ((errno == EINVAL || errno == ENOSYS) && rename(from, project->target) == 0)
        return DAVIT_EXIT_OK;
    return failed(call, project->target, g_strerror(errno));
}

static void remove_all(const char *dir, const GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(dir, g_ptr_array_index(names, i), NULL);
        g_unlink(path);
    }
    g_rmdir(dir);
}

static int write_project(DavitCall *call, const Project *project, GPtrArray *names)
{
    GHashTable *files = make_files(project, names);
    g_autofree char *parent = g_path_get_dirname(project->target);
    g_autofree char *hidden = g_strdup_printf("%s/.%s-XXXXXX", parent, project->name);
    int code;

    if (!g_mkdtemp_full(hidden, 0777)) {
        code = failed(call, parent, g_strerror(errno));
    } else {
        code = write_files(call, hidden, files, names);
        if (code == DAVIT_EXIT_OK)
            code = put_in_place(call, hidden, project);
        if (code != DAVIT_EXIT_OK)
            remove_all(hidden, names);
    }
    for (guint i = 0; i < names->len; i++)
        g_string_free(g_hash_table_lookup(files, g_ptr_array_index(names, i)), TRUE);
    g_hash_table_unref(files);
    return code;
}

/* ---- the command ---- */

static void tell(DavitCall *call, const Project *project, const GPtrArray *names)
{
    json_t *list = json_array();

    for (guint i = 0; i < names->len; i++)
        json_array_append_new(list, davit_json_text(g_ptr_array_index(names, i)));
    json_object_set_new(call->doc, "kind", json_string(project->kind));
    json_object_set_new(call->doc, "id", davit_json_text(project->id));
    json_object_set_new(call->doc, "dir", davit_json_text(project->target));
    json_object_set_new(call->doc, "files", list);
    if (call->json || call->quiet)
        return;
    printf("%s: %s %s\n", davit_shown(project->target), project->kind, project->id);
    for (guint i = 0; i < names->len; i++)
        printf("  %s\n", (const char *)g_ptr_array_index(names, i));
    printf("build and test it:\n"
           "  cd %s && cmake -S . -B build && cmake --build build && ctest --test-dir build\n"
           "(add -DCMAKE_PREFIX_PATH=PREFIX if davit is not installed below /usr or /usr/local)\n",
           davit_shown(project->target));
}

static int run(DavitCall *call)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *id = davit_call_text(call, "id");
    Project project = {.kind = call->args[0], .name = call->args[1]};
    int code;

    project.id = id ? g_strdup(id)
                    : g_strdup_printf("org.example.%s.%s", project.kind, project.name);
    project.class_name = class_of(project.name);
    project.target = g_build_filename(davit_call_text(call, "dir"), project.name, NULL);
    code = check(call, &project);
    if (code == DAVIT_EXIT_OK)
        code = write_project(call, &project, names);
    if (code == DAVIT_EXIT_OK)
        tell(call, &project, names);
    g_free(project.id);
    g_free(project.class_name);
    g_free(project.target);
    return code;
}

const DavitCommand davit_command_plugin_new = {
    .name = "plugin new",
    .args = "KIND NAME",
    .min_args = 2,
    .max_args = 2,
    .summary = "write a plugin project: source, test, README, CMakeLists.txt",
    .description = "KIND is format, arch, quant, tokenizer or kernels. The project compiles against "
                   "the installed SDK, passes its tests and is loaded by davit as it is; its README "
                   "says what to change.",
    .flags = flags,
    .examples = examples,
    .run = run,
};
