/* SPDX-License-Identifier: Apache-2.0
 * Tiny models through the program, on the CPU and on memdev: the same ids, every private byte
 * uploaded once, nothing borrowed. */
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <jansson.h>

/* (owned) the document of `davit run` with two flags and their values; @more NULL = one. */
static json_t *run_more(const char *model, const char *flag, const char *value, const char *more,
                        const char *n)
{
    g_autofree char *path = g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models", model, NULL);
    const char *argv[] = {DAVIT_PROGRAM, "run", path, "--ids", "1 20 30 45 6 17 28 39", "-n", "6",
                          "--activations", "f32", "--ignore-eos", "--json", flag, value,
                          "--plugin-path", MEMDEV_DIR, more, n, NULL};
    g_autofree char *text = NULL, *said = NULL;
    g_autoptr(GError) error = NULL;
    json_t *document;
    int status;

    g_spawn_sync(NULL, (char **)(void *)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &text, &said,
                 &status, &error);
    g_assert_no_error(error);
    document = json_loads(text, 0, NULL);
    if (status != 0 || !document)
        g_error("%s %s %s: status %d\n%s%s", model, flag, value, status, text, said);
    return document;
}

static json_t *run_with(const char *model, const char *flag, const char *value)
{
    return run_more(model, flag, value, NULL, NULL);
}

static json_t *run_model(const char *model, const char *device)
{
    return run_with(model, "--device", device);
}

static json_int_t load_number(const json_t *document, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(document, "load"), key));
}

static double stage_number(const json_t *document, const char *stage, const char *key)
{
    const json_t *stages = json_object_get(json_object_get(document, "load"), "stages");

    return json_number_value(json_object_get(json_object_get(stages, stage), key));
}

/* Stages, classes of tensors, memory: what is told beside the counters agrees with them. */
static void check_report(const json_t *document, bool on_device)
{
    const json_t *load = json_object_get(document, "load");
    const json_t *tensors = json_object_get(load, "tensors");
    const json_int_t read = load_number(document, "read_bytes");

    g_assert_cmpfloat(stage_number(document, "read", "bytes"), ==, (double)read);
    g_assert_cmpfloat(stage_number(document, "convert", "bytes"), ==,
                      (double)load_number(document, "host_copy_bytes"));
    g_assert_cmpfloat(stage_number(document, "upload", "bytes"), ==,
                      (double)load_number(document, "uploaded_bytes"));
    g_assert_cmpint(load_number(document, "device_upload_bytes"), ==,
                    load_number(document, "uploaded_bytes"));
    g_assert_true((load_number(document, "uploaded_bytes") > 0) == on_device);
    g_assert_true((stage_number(document, "upload", "thread_s") > 0) == on_device);
    g_assert_cmpfloat(stage_number(document, "read", "limit_gb_s"), >, 0);
    /* every byte that is needed is read, and small files are read as they are asked for */
    g_assert_true(read == 0 || json_real_value(json_object_get(load, "amplification")) >= 1);
    g_assert_cmpint(json_integer_value(json_object_get(tensors, "used")), >, 0);
    g_assert_cmpint(json_integer_value(json_object_get(tensors, "ignored")), ==, 0);
    g_assert_cmpint(load_number(document, "header_bytes"), >, 0);
    g_assert_cmpint(load_number(document, "peak_rss_bytes"), >,
                    load_number(document, "private_bytes"));
}

static void same_ids_on_the_device(const void *data)
{
    json_t *cpu = run_model(data, "cpu"), *device = run_model(data, "memdev");

    g_assert_cmpstr(json_string_value(
                        json_object_get(json_object_get(device, "load"), "kernels")),
                    ==, "test.davit.memdev");
    g_assert_cmpuint(json_array_size(json_object_get(cpu, "ids")), ==, 6);
    g_assert_true(json_equal(json_object_get(cpu, "ids"), json_object_get(device, "ids")));
    check_report(cpu, false);
    check_report(device, true);
    g_assert_cmpint(load_number(device, "borrowed_bytes"), ==, 0);
    /* what the CPU borrows or holds lies on the device, give or take alignment */
    g_assert_cmpint(load_number(device, "private_bytes"), >=,
                    load_number(cpu, "borrowed_bytes") + load_number(cpu, "private_bytes"));
    /* every byte that was made, and the program's constants behind them */
    g_assert_cmpint(load_number(device, "uploaded_bytes"), >=,
                    load_number(device, "copied_bytes") + load_number(device, "packed_bytes") +
                        load_number(device, "decoded_bytes"));
    g_assert_cmpint(load_number(device, "uploaded_bytes"), <=,
                    load_number(device, "private_bytes") + 4096);
    json_decref(cpu);
    json_decref(device);
}

/* Wherever a device map puts what runs, the ids are the same; what crossed is counted. */
static void same_ids_wherever_it_lies(const void *data)
{
    static const char *const maps[] = {
        "{\"\": \"disk\"}",
        "{\"model.layers.0\": \"disk\", \"model.embed_tokens\": \"disk\", \"\": \"cpu\"}",
        "{\"\": 1}",
        "{\"model.layers.0\": \"disk\", \"\": \"memdev:1\"}",
        "{\"model.layers.0\": \"memdev:1\", \"\": \"cpu\"}",
        "{\"model.layers.0\": \"cpu\", \"model.norm\": \"memdev:1\", \"\": \"memdev:0\"}"};
    json_t *cpu = run_model(data, "cpu");

    for (size_t i = 0; i < G_N_ELEMENTS(maps); i++) {
        g_autofree char *path = NULL;
        const int fd = g_file_open_tmp("davit-map-XXXXXX", &path, NULL);
        json_t *document, *slots;

        g_assert_cmpint(write(fd, maps[i], strlen(maps[i])), ==, (gssize)strlen(maps[i]));
        close(fd);
        document = run_with(data, "--device-map", path);
        slots = json_object_get(json_object_get(document, "load"), "slots");
        g_assert_true(json_equal(json_object_get(cpu, "ids"), json_object_get(document, "ids")));
        g_assert_true((json_integer_value(json_object_get(slots, "defer")) > 0) ==
                      (strstr(maps[i], "disk") != NULL));
        g_assert_true((load_number(document, "crossed_bytes") > 0) == (i > 2));
        json_decref(document);
        g_unlink(path);
    }
    json_decref(cpu);
}

/* (owned) what `davit plan` prints of @map, with @json (or NULL). */
static char *plan_text(const char *model, const char *map, const char *json)
{
    g_autofree char *path = g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models", model, NULL);
    const char *argv[] = {DAVIT_PROGRAM, "plan", path, "--device-map", map, "--plugin-path",
                          MEMDEV_DIR, json, NULL};
    char *text = NULL;
    int status;

    g_assert_true(g_spawn_sync(NULL, (char **)(void *)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                               NULL, &text, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    return text;
}

/* Which device does which layers, and what crosses between them: rows of 32 float32, and the
 * angles that were made where the embedding is (8 wide). */
static void plan_tells_the_way(const void *model)
{
    const char *places = "{\"model.layers.1\": \"memdev:1\", \"\": \"cpu\"}";
    g_autofree char *map = NULL, *text = NULL, *json = NULL;
    const int fd = g_file_open_tmp("davit-map-XXXXXX", &map, NULL);
    json_t *document, *legs, *crossing;

    g_assert_cmpint(write(fd, places, strlen(places)), ==, (gssize)strlen(places));
    close(fd);
    text = plan_text(model, map, NULL);
    g_assert_nonnull(strstr(text, "from cpu to memdev:1 before layer 1: 160 bytes a token\n"));
    json = plan_text(model, map, "--json");
    document = json_loads(json, 0, NULL);
    g_assert_true(json_is_true(json_object_get(document, "runs")));
    legs = json_object_get(document, "legs");
    g_assert_cmpuint(json_array_size(legs), ==, 3);
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(legs, 1), "device")), ==,
                    "memdev:1");
    g_assert_cmpint(json_integer_value(json_object_get(json_array_get(legs, 1), "first_layer")),
                    ==, 1);
    g_assert_true(json_is_null(json_object_get(json_array_get(legs, 2), "first_layer")));
    crossing = json_array_get(json_object_get(json_array_get(legs, 2), "crossings"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(crossing, "from")), ==, "memdev:1");
    g_assert_cmpint(json_integer_value(json_object_get(crossing, "values")), ==, 1);
    json_decref(document);
    g_unlink(map);
}

/* Two ranks on a device each: sums go through the host, the ids are those of one process. */
static void ranks_have_a_device_each(const void *data)
{
    json_t *alone = run_model(data, "cpu");
    json_t *ranks = run_more(data, "--device", "memdev", "--tp", "2");

    g_assert_true(json_equal(json_object_get(alone, "ids"), json_object_get(ranks, "ids")));
    g_assert_cmpint(load_number(ranks, "crossed_bytes"), >, 0);
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(ranks, "load"), "kernels")),
                    ==, "test.davit.memdev");
    json_decref(alone);
    json_decref(ranks);
}

/* The second of two devices is lost with its tenth call: exit 1, one error that names it. */
static void a_lost_device_ends_the_run(void)
{
    g_autofree char *model =
        g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models/llama_mini", NULL);
    g_autofree char *map = NULL, *text = NULL, *said = NULL;
    g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "MEMDEV_FAIL", "1:9", TRUE);
    const int fd = g_file_open_tmp("davit-map-XXXXXX", &map, NULL);
    const char *places = "{\"model.layers.1\": \"memdev:1\", \"\": \"cpu\"}";
    const char *argv[] = {DAVIT_PROGRAM, "run", model, "--ids", "1 2 3", "--json", "--device-map",
                          map, "--plugin-path", MEMDEV_DIR, NULL};
    json_t *document, *record;
    size_t i, n_errors = 0;
    int status;

    g_assert_cmpint(write(fd, places, strlen(places)), ==, (gssize)strlen(places));
    close(fd);
    g_assert_true(g_spawn_sync(NULL, (char **)(void *)argv, environment, G_SPAWN_DEFAULT, NULL,
                               NULL, &text, &said, &status, NULL));
    g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    document = json_loads(text, 0, NULL);
    g_assert_true(json_is_false(json_object_get(document, "ok")));
    json_array_foreach(json_object_get(document, "records"), i, record)
    {
        if (strcmp(json_string_value(json_object_get(record, "severity")), "error") != 0)
            continue;
        n_errors++;
        g_assert_cmpstr(json_string_value(json_object_get(record, "code")), ==, "device-lost");
        g_assert_cmpstr(json_string_value(json_object_get(record, "subject")), ==, "memdev:1");
        g_assert_cmpstr(json_string_value(json_object_get(record, "found")), ==, "layer 1");
    }
    g_assert_cmpuint(n_errors, ==, 1);
    json_decref(document);
    g_unlink(map);
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"llama_mini", "qwen3_moe", "gemma3", "gguf_q4_k_m"};

    g_setenv("MEMDEV_DEVICES", "2", TRUE);
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *path = g_strdup_printf("/memdev/model/%s", models[i]);
        g_test_add_data_func(path, models[i], same_ids_on_the_device);
    }
    g_test_add_data_func("/memdev/map/llama_mini", "llama_mini", same_ids_wherever_it_lies);
    g_test_add_data_func("/memdev/map/gguf_q4_k_m", "gguf_q4_k_m", same_ids_wherever_it_lies);
    g_test_add_data_func("/memdev/ranks/llama_mini", "llama_mini", ranks_have_a_device_each);
    g_test_add_data_func("/memdev/plan/llama_mini", "llama_mini", plan_tells_the_way);
    g_test_add_func("/memdev/lost", a_lost_device_ends_the_run);
    return g_test_run();
}
