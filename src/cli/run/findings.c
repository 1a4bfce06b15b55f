/* SPDX-License-Identifier: Apache-2.0 */
/* What --check found: as text, as a member of the JSON document, as SARIF 2.1.0. */
#include <stdlib.h>
#include <string.h>

#include "run.h"

void bh__findings_get(bh__run *run) {
    size_t count = 0;
    if (!run->options->check || run->device.id == 0 ||
        bh_device_list_findings(run->device, 0, NULL, 0, 0, &count) != BH_OK || count == 0)
        return;
    run->findings = calloc(count, sizeof *run->findings);
    if (run->findings == NULL) return;
    size_t found = count;
    if (bh_device_list_findings(run->device, 0, run->findings, sizeof *run->findings, count,
                                &found) == BH_OK)
        run->finding_count = found < count ? found : count;
}

void bh__findings_print(const bh__run *run) {
    for (size_t i = 0; i < run->finding_count && run->finding_count > 1; i++) {
        const bh_finding *f = &run->findings[i];
        fprintf(stderr, "finding %zu: %s, %llu time%s: %s\n", i + 1, f->kind,
                (unsigned long long)f->count, f->count == 1 ? "" : "s", f->message);
    }
}

/* ---- JSON ---- */

static void json_index(bh__json *json, const char *key, const uint32_t index[3]) {
    bh__json_key(json, key);
    bh__json_open_inline(json, '[');
    for (int i = 0; i < 3; i++) bh__json_number(json, index[i]);
    bh__json_close(json, ']');
}

static const char *access_name(uint32_t access) {
    return access == (BH_ACCESS_IN | BH_ACCESS_OUT) ? "atomic"
           : access == BH_ACCESS_OUT                ? "write"
                                                    : "read";
}

static void json_place(bh__json *json, const char *key, const bh_finding_place *place) {
    if (place->line == 0) return;
    bh__json_key(json, key);
    bh__json_open(json, '{');
    bh__json_key(json, "line");
    bh__json_number(json, place->line);
    if (place->source_line != 0) {
        bh__json_key(json, "file");
        bh__json_text(json, place->file);
        bh__json_key(json, "source_line");
        bh__json_number(json, place->source_line);
    }
    json_index(json, "block", place->block);
    json_index(json, "thread", place->thread);
    if (place->access != 0) {
        bh__json_key(json, "access");
        bh__json_text(json, access_name(place->access));
    }
    bh__json_close(json, '}');
}

static void json_finding(bh__json *json, const bh_finding *f) {
    bh__json_open(json, '{');
    bh__json_key(json, "kind");
    bh__json_text(json, f->kind);
    bh__json_key(json, "kernel");
    bh__json_text(json, f->kernel);
    bh__json_key(json, "count");
    bh__json_number(json, f->count);
    if (f->bytes != 0) {
        char address[32];
        snprintf(address, sizeof address, "0x%llx", (unsigned long long)f->address);
        bh__json_key(json, "address");
        bh__json_text(json, address);
        bh__json_key(json, "bytes");
        bh__json_number(json, f->bytes);
    }
    json_place(json, "here", &f->here);
    json_place(json, "other", &f->other);
    bh__json_key(json, "message");
    bh__json_text(json, f->message);
    bh__json_key(json, "fix");
    bh__json_text(json, f->fix);
    bh__json_close(json, '}');
}

void bh__findings_json(const bh__run *run, bh__json *json) {
    if (!run->options->check) return;
    bh__json_key(json, "findings");
    bh__json_open(json, '[');
    for (size_t i = 0; i < run->finding_count; i++) json_finding(json, &run->findings[i]);
    bh__json_close(json, ']');
}

/* ---- SARIF ---- */

static void sarif_message(bh__json *json, const char *text) {
    bh__json_key(json, "message");
    bh__json_open_inline(json, '{');
    bh__json_key(json, "text");
    bh__json_text(json, text);
    bh__json_close(json, '}');
}

/* The source that the PTX was compiled from where that is known, else the PTX itself. */
static void sarif_place(const bh__run *run, bh__json *json, const bh_finding_place *place,
                        const char *text) {
    bool source = place->source_line != 0;
    bh__json_open(json, '{');
    bh__json_key(json, "physicalLocation");
    bh__json_open(json, '{');
    bh__json_key(json, "artifactLocation");
    bh__json_open_inline(json, '{');
    bh__json_key(json, "uri");
    bh__json_text(json, source ? place->file : run->options->file);
    bh__json_close(json, '}');
    bh__json_key(json, "region");
    bh__json_open_inline(json, '{');
    bh__json_key(json, "startLine");
    bh__json_number(json, source ? place->source_line : place->line);
    bh__json_close(json, '}');
    bh__json_close(json, '}');
    if (text != NULL) sarif_message(json, text);
    bh__json_close(json, '}');
}

static void sarif_result(const bh__run *run, bh__json *json, const bh_finding *f) {
    bh__json_open(json, '{');
    bh__json_key(json, "ruleId");
    bh__json_text(json, f->kind);
    bh__json_key(json, "level");
    bh__json_text(json, "error");
    sarif_message(json, f->message);
    bh__json_key(json, "occurrenceCount");
    bh__json_number(json, f->count > 0 ? f->count : 1);
    bh__json_key(json, "locations");
    bh__json_open(json, '[');
    if (f->here.line != 0) sarif_place(run, json, &f->here, NULL);
    bh__json_close(json, ']');
    if (f->other.line != 0) {
        bh__json_key(json, "relatedLocations");
        bh__json_open(json, '[');
        sarif_place(run, json, &f->other, "the other access");
        bh__json_close(json, ']');
    }
    bh__json_close(json, '}');
}

static bool is_first_of_kind(const bh__run *run, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (strcmp(run->findings[i].kind, run->findings[index].kind) == 0) return false;
    return true;
}

static void sarif_rules(const bh__run *run, bh__json *json) {
    bh__json_key(json, "rules");
    bh__json_open(json, '[');
    for (size_t i = 0; i < run->finding_count; i++) {
        if (!is_first_of_kind(run, i)) continue;
        bh__json_open(json, '{');
        bh__json_key(json, "id");
        bh__json_text(json, run->findings[i].kind);
        bh__json_key(json, "help");
        bh__json_open_inline(json, '{');
        bh__json_key(json, "text");
        bh__json_text(json, run->findings[i].fix);
        bh__json_close(json, '}');
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
}

/* An error that is no finding, such as a file that does not load, is a failed execution. */
static void sarif_invocation(const bh__run *run, bh__json *json) {
    bool done = run->error.status == BH_OK || run->finding_count > 0;
    bh__json_key(json, "invocations");
    bh__json_open(json, '[');
    bh__json_open(json, '{');
    bh__json_key(json, "executionSuccessful");
    bh__json_bool(json, done);
    if (!done) {
        bh__json_key(json, "toolExecutionNotifications");
        bh__json_open(json, '[');
        bh__json_open(json, '{');
        bh__json_key(json, "level");
        bh__json_text(json, "error");
        sarif_message(json, run->error.message);
        bh__json_close(json, '}');
        bh__json_close(json, ']');
    }
    bh__json_close(json, '}');
    bh__json_close(json, ']');
}

void bh__findings_sarif(const bh__run *run) {
    bh__json json;
    bh__json_begin(&json, stdout);
    bh__json_open(&json, '{');
    bh__json_key(&json, "$schema");
    bh__json_text(&json, "https://json.schemastore.org/sarif-2.1.0.json");
    bh__json_key(&json, "version");
    bh__json_text(&json, "2.1.0");
    bh__json_key(&json, "runs");
    bh__json_open(&json, '[');
    bh__json_open(&json, '{');
    bh__json_key(&json, "tool");
    bh__json_open(&json, '{');
    bh__json_key(&json, "driver");
    bh__json_open(&json, '{');
    bh__json_key(&json, "name");
    bh__json_text(&json, "bulkhead");
    bh__json_key(&json, "version");
    bh__json_text(&json, bh_version());
    sarif_rules(run, &json);
    bh__json_close(&json, '}');
    bh__json_close(&json, '}');
    sarif_invocation(run, &json);
    bh__json_key(&json, "results");
    bh__json_open(&json, '[');
    for (size_t i = 0; i < run->finding_count; i++) sarif_result(run, &json, &run->findings[i]);
    bh__json_close(&json, ']');
    bh__json_close(&json, '}');
    bh__json_close(&json, ']');
    bh__json_close(&json, '}');
    bh__json_end(&json);
}
