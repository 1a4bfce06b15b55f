/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead cache`: showing and clearing the cache of compiled kernels. */
#include "source.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int refuse(void) {
    bh_error error;
    bh__report_library(&error);
    bh__report_print(&error);
    return BH__EXIT_REFUSED;
}

static int refuse_memory(size_t entries) {
    bh_error error;
    bh__report_set(&error, BH_E_NO_HOST_MEMORY, "no memory for %zu entries", entries);
    bh__report_fix(&error, "free some memory");
    bh__report_print(&error);
    return BH__EXIT_REFUSED;
}

/* ---- stats ---- */

static void print_stats(const bh_cache_info *info) {
    char bytes[BH__TEXT], limit[BH__TEXT];
    printf("folder   %s\n", info->dir[0] != '\0' ? info->dir : "none");
    if (info->why[0] != '\0') printf("%s  %s\n", info->usable ? "note   " : "unused ", info->why);
    printf("entries  %llu\n", (unsigned long long)info->entries);
    printf("size     %s of %s\n", bh__text_size(info->bytes, bytes),
           bh__text_size(info->limit, limit));
    printf("hits     %llu\nmisses   %llu\n", (unsigned long long)info->all_hits,
           (unsigned long long)info->all_misses);
}

static void json_stats(const bh_cache_info *info) {
    bh__json json;
    bh__json_begin(&json, stdout);
    bh__json_open(&json, '{');
    bh__json_key(&json, "folder");
    bh__json_text(&json, info->dir);
    bh__json_key(&json, "usable");
    bh__json_bool(&json, info->usable != 0);
    bh__json_key(&json, "why");
    bh__json_text(&json, info->why);
    bh__json_key(&json, "entries");
    bh__json_number(&json, info->entries);
    bh__json_key(&json, "bytes");
    bh__json_number(&json, info->bytes);
    bh__json_key(&json, "limit");
    bh__json_number(&json, info->limit);
    bh__json_key(&json, "hits");
    bh__json_number(&json, info->all_hits);
    bh__json_key(&json, "misses");
    bh__json_number(&json, info->all_misses);
    bh__json_close(&json, '}');
    bh__json_end(&json);
}

static int stats(bool as_json) {
    bh_cache_info info = BH_INIT(info);
    if (bh_cache_get_info(NULL, &info) != BH_OK) return refuse();
    if (as_json)
        json_stats(&info);
    else
        print_stats(&info);
    return BH__EXIT_DONE;
}

/* ---- list ---- */

static void print_time(uint64_t ns, char out[32]) {
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm local;
    if (localtime_r(&seconds, &local) == NULL ||
        strftime(out, 32, "%Y-%m-%d %H:%M:%S", &local) == 0)
        strcpy(out, "?");
}

/* json NULL: as a line of text. */
static void print_entry(bh__json *json, const bh_cache_entry *entry) {
    char used[32], size[BH__TEXT];
    print_time(entry->used_ns, used);
    if (json == NULL) {
        printf("%.12s  %s  %9s  %-7s %-7s %-14s %s\n", entry->key, used,
               bh__text_size(entry->bytes, size), bh__source_output_text(entry->output),
               entry->arch, entry->compiler, entry->name);
        return;
    }
    bh__json_open(json, '{');
    bh__json_key(json, "key");
    bh__json_text(json, entry->key);
    bh__json_key(json, "name");
    bh__json_text(json, entry->name);
    bh__json_key(json, "output");
    bh__json_text(json, bh__source_output_text(entry->output));
    bh__json_key(json, "arch");
    bh__json_text(json, entry->arch);
    bh__json_key(json, "compiler");
    bh__json_text(json, entry->compiler);
    bh__json_key(json, "bytes");
    bh__json_number(json, entry->bytes);
    bh__json_key(json, "used_ns");
    bh__json_number(json, entry->used_ns);
    bh__json_close(json, '}');
}

/* Lists the whole cache into an array of its own. Other processes may add entries meanwhile. */
static bh_status read_entries(bh_cache_entry **out, size_t *out_count) {
    size_t room = 0, count = 0;
    bh_cache_entry *entries = NULL;
    bh_status status = bh_cache_list(NULL, NULL, 0, 0, &count);
    while (status == BH_OK && count > room) {
        room = count + count / 8 + 8;
        free(entries);
        entries = calloc(room, sizeof *entries);
        status = entries == NULL ? BH_E_NO_HOST_MEMORY
                                 : bh_cache_list(NULL, entries, sizeof *entries, room, &count);
    }
    *out = entries;
    *out_count = count;
    return status;
}

static int list_entries(bool as_json) {
    bh_cache_entry *entries;
    size_t count;
    bh_status status = read_entries(&entries, &count);
    if (status == BH_E_NO_HOST_MEMORY && entries == NULL) return refuse_memory(count);
    bh__json json;
    if (status == BH_OK && as_json) {
        bh__json_begin(&json, stdout);
        bh__json_open(&json, '{');
        bh__json_key(&json, "entries");
        bh__json_open(&json, '[');
    }
    for (size_t i = 0; status == BH_OK && i < count; i++)
        print_entry(as_json ? &json : NULL, &entries[i]);
    if (status == BH_OK && as_json) {
        bh__json_close(&json, ']');
        bh__json_close(&json, '}');
        bh__json_end(&json);
    }
    free(entries);
    return status == BH_OK ? BH__EXIT_DONE : refuse();
}

/* ---- clear ---- */

static int clear(bool as_json) {
    bh_cache_info before = BH_INIT(before);
    if (bh_cache_get_info(NULL, &before) != BH_OK || bh_cache_clear(NULL) != BH_OK) return refuse();
    char size[BH__TEXT];
    if (as_json) {
        bh__json json;
        bh__json_begin(&json, stdout);
        bh__json_open(&json, '{');
        bh__json_key(&json, "removed");
        bh__json_number(&json, before.entries);
        bh__json_key(&json, "bytes");
        bh__json_number(&json, before.bytes);
        bh__json_close(&json, '}');
        bh__json_end(&json);
    } else {
        printf("removed %llu entr%s, %s\n", (unsigned long long)before.entries,
               before.entries == 1 ? "y" : "ies", bh__text_size(before.bytes, size));
    }
    return BH__EXIT_DONE;
}

static int wrong(const char *format, const char *word) {
    bh_error error;
    bh__report_set(&error, BH_E_INVALID, format, word);
    bh__report_fix(&error, "write bulkhead cache stats, list or clear");
    return bh__report_usage(&error);
}

int bh__cache_main(int count, char **list) {
    static const bh__option table[] = {{0, "json", NULL, 'j'}, {'h', "help", NULL, 'h'}};
    bh__options words = {
        .command = "cache", .table = table, .table_count = 2, .list = list, .count = count};
    const char *what = NULL, *value = NULL;
    bool json = false;
    bh_error error;
    for (int id; (id = bh__options_next(&words, &value, &error)) != BH__OPTIONS_END;) {
        if (id == BH__OPTIONS_WRONG) return bh__report_usage(&error);
        if (id == 'h') {
            bh__help_print(stdout, "cache");
            return BH__EXIT_DONE;
        }
        if (id == 'j')
            json = true;
        else if (what != NULL)
            return wrong("bulkhead cache takes one command, \"%.100s\" is a second one", value);
        else
            what = value;
    }
    if (what == NULL || strcmp(what, "stats") == 0) return stats(json);
    if (strcmp(what, "list") == 0) return list_entries(json);
    if (strcmp(what, "clear") == 0) return clear(json);
    return wrong("\"%.100s\" is not a command of bulkhead cache", what);
}
