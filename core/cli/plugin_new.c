/* SPDX-License-Identifier: Apache-2.0
 * davit plugin new: write a plugin project that compiles, passes its tests and is loaded. The
 * folder appears whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/small_file.h"
#include "cli/commands.h"
#include "cli/plugin_templates.h"

#define KINDS    "format|arch|quant|tokenizer|kernels"
#define MAX_NAME 32

static const DavitFlag flags[] = {
    {"id", 0, DAVIT_FLAG_TEXT, "ID", "component id in reverse DNS, org.example.KIND.NAME if absent",
     NULL, NULL, false},
    {"class", 0, DAVIT_FLAG_TEXT, "CLASS",
     "arch: the name that config.json has in architectures, NameForCausalLM if absent", NULL, NULL,
     false},
    {"model-type", 0, DAVIT_FLAG_TEXT, "TYPE", "arch: its model_type, NAME if absent", NULL, NULL,
     false},
    {"from", 0, DAVIT_FLAG_TEXT, "CONFIG", "arch: take both from this config.json", NULL, NULL,
     false},
    {"dir", 0, DAVIT_FLAG_TEXT, "DIR", "make the folder NAME in this directory", NULL, ".", false},
    {0},
};
static const char *const examples[] = {
    "davit plugin new arch mymodel --id org.me.arch.mymodel", "an architecture in ./mymodel",
    "davit plugin new arch mymodel --from ~/models/mymodel/config.json",
    "the same for the class and model_type that this model names",
    "davit plugin new tokenizer mytok && cd mytok && cmake -S . -B build && cmake --build build",
    "write a tokenizer family and build it", NULL};

/* What the project is called. */
typedef struct Project {
    const char *kind, *name;
    char *id;                      /* (owned) */
    char *class_name, *model_type; /* (owned) of an architecture */
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

/* A C identifier, a file name and a CMake target at once; davit_component is the SDK's. */
static bool is_name(const char *name)
{
    static const char *const targets[] = {"all",  "clean",   "help",         "install",
                                          "test", "package", "edit_cache",   "rebuild_cache",
                                          "none", "depend",  "package_source", NULL};
    const size_t n = strlen(name);

    return g_ascii_islower(name[0]) && n <= MAX_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n &&
           !g_str_has_prefix(name, "davit") && !g_strv_contains(targets, name);
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

/* What can stand in a C string, a capability and a config.json. */
static bool is_word(const char *text, const char *beyond_letters)
{
    const size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if (!g_ascii_isalnum(text[i]) && !strchr(beyond_letters, text[i]))
            return false;
    return n >= 1 && n <= 96;
}

static int check_names(DavitCall *call, const Project *project)
{
    static const char *const flags_of_arch[] = {"class", "model-type", "from"};

    for (size_t i = 0; i < G_N_ELEMENTS(flags_of_arch); i++)
        if (davit_call_has(call, flags_of_arch[i]) && strcmp(project->kind, "arch") != 0)
            return wrong(call, davit_report_text(call->report, "--%s", flags_of_arch[i]),
                         "KIND arch", project->kind, "only an architecture has such a name");
    if (!is_word(project->class_name, "_"))
        return wrong(call, "--class", "letters, digits and _, at most 96", project->class_name,
                     "the class cannot be used in C and in a capability");
    if (!is_word(project->model_type, "_-."))
        return wrong(call, "--model-type", "letters, digits, _, - and ., at most 96",
                     project->model_type,
                     "the model type cannot be used in C and in a capability");
    return DAVIT_EXIT_OK;
}

static int check(DavitCall *call, const Project *project)
{
    g_auto(GStrv) kinds = g_strsplit(KINDS, "|", -1);

    if (!g_strv_contains((const char *const *)kinds, project->kind))
        return wrong(call, "KIND", KINDS, project->kind, "there is no template for this kind");
    if (!is_name(project->name))
        return wrong(call, "NAME",
                     "at most 32 of a-z, 0-9 and _, a letter first, not davit first, no name of a "
                     "build target",
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
    return check_names(call, project);
}

/* ---- writing ---- */

static int failed(DavitCall *call, const char *path, const char *why)
{
    davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                                   .status = DAVIT_E_IO,
                                                   .stage = "write",
                                                   .subject = path,
                                                   .found = why,
                                                   .message = "it cannot be read or written",
                                                   .hint = "check the path; --dir makes the "
                                                           "folder elsewhere"});
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
    g_string_replace(text, "@TYPE@", project->model_type, 0);
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

#define MAX_CONFIG (16u << 20) /* bytes of a config.json */

/* Class and model_type of the config.json that --from names; what it lacks stays. */
static int read_config(DavitCall *call, const char *path, Project *project)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    json_error_t where;
    gsize len = 0;
    json_t *doc;
    const char *class_name, *model_type;

    text = davit_small_file_read(path, MAX_CONFIG, &len, &error);
    if (!text)
        return failed(call, path, error->message);
    doc = json_loadb(text, len, 0, &where);
    class_name =
        json_string_value(json_array_get(json_object_get(doc, "architectures"), 0));
    model_type = json_string_value(json_object_get(doc, "model_type"));
    if (!class_name && !model_type) {
        json_decref(doc);
        return wrong(call, "--from", "a config.json with architectures or model_type", path,
                     "the file names no architecture");
    }
    if (class_name && !davit_call_has(call, "class")) {
        g_free(project->class_name);
        project->class_name = g_strdup(class_name);
    }
    if (model_type && !davit_call_has(call, "model-type")) {
        g_free(project->model_type);
        project->model_type = g_strdup(model_type);
    }
    json_decref(doc);
    return DAVIT_EXIT_OK;
}

/* Names of the architecture: given, else of --from, else made of NAME. */
static int name_model(DavitCall *call, Project *project)
{
    const char *class_name = davit_call_text(call, "class");
    const char *model_type = davit_call_text(call, "model-type");
    const char *from = davit_call_text(call, "from");

    project->class_name = class_name ? g_strdup(class_name) : class_of(project->name);
    project->model_type = g_strdup(model_type ? model_type : project->name);
    return from && strcmp(project->kind, "arch") == 0 ? read_config(call, from, project)
                                                      : DAVIT_EXIT_OK;
}

static int run(DavitCall *call)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *id = davit_call_text(call, "id");
    Project project = {.kind = call->args[0], .name = call->args[1]};
    int code;

    project.id = id ? g_strdup(id)
                    : g_strdup_printf("org.example.%s.%s", project.kind, project.name);
    project.target = g_build_filename(davit_call_text(call, "dir"), project.name, NULL);
    code = name_model(call, &project);
    if (code == DAVIT_EXIT_OK)
        code = check(call, &project);
    if (code == DAVIT_EXIT_OK)
        code = write_project(call, &project, names);
    if (code == DAVIT_EXIT_OK)
        tell(call, &project, names);
    g_free(project.id);
    g_free(project.class_name);
    g_free(project.model_type);
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
