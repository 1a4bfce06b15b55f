/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that the library fills in, as dicts with the names of their fields. */
#include <string.h>

#include "core.h"

/* clang-format off */
#define TABLE(type) static const field fields_##type[]
#define F(name, kind) {#name, kind, offsetof(T, name), sizeof(((T *)0)->name)}
#define END {NULL, 0, 0, 0}
#define LAYOUT(short, type) const layout layout_##short = {#type, sizeof(type), fields_##type}

#define T bh_device_info
TABLE(bh_device_info) = {
    F(kind, 's'), F(name, 's'), F(driver, 's'), F(arch, 's'), F(uuid, 's'), F(pci, 's'),
    F(memory_total, 'u'), F(memory_free, 'u'), F(multiprocessors, 'u'), F(warp_size, 'u'),
    F(max_threads_per_block, 'u'), F(driver_version, 'u'), F(cooperative, 'u'), F(no_standby, 's'),
    F(sandbox, 'u'), F(sandbox_lack, 's'), F(passed_over, 's'), END};
#undef T
#define T bh_device_limits
TABLE(bh_device_limits) = {
    F(max_block, 'a'), F(max_grid, 'a'), F(max_lanes, 'u'), F(max_param_bytes, 'u'),
    F(shared_per_block, 'u'), F(shared_per_block_max, 'u'), F(shared_per_multiprocessor, 'u'),
    F(registers_per_block, 'u'), F(registers_per_multiprocessor, 'u'),
    F(max_threads_per_multiprocessor, 'u'), F(max_blocks_per_multiprocessor, 'u'),
    F(clock_khz, 'u'), F(memory_clock_khz, 'u'), F(memory_bus_bits, 'u'), F(l2_bytes, 'u'),
    F(async_engines, 'u'), F(concurrent_kernels, 'u'), F(cluster_launch, 'u'), F(ecc, 'u'),
    F(compute_mode, 'u'), F(mig, 'u'), F(mps, 'u'), F(priority_lowest, 'i'),
    F(priority_highest, 'i'), F(no_tracking, 's'), END};
#undef T
#define T bh_health
TABLE(bh_health) = {
    F(state, 'u'), F(generation, 'u'), F(losses, 'u'), F(losses_in_window, 'u'),
    F(restart_limit, 'u'), F(standbys_ready, 'u'), F(standbys, 'u'), F(worker_pid, 'i'),
    F(standby_pids, 'a'), F(lanes, 'u'), F(oldest_running_ns, 'u'), F(reason, 's'), END};
#undef T
#define T bh_loss
TABLE(bh_loss) = {
    F(cause, 'i'), F(generation, 'u'), F(certain, 'u'), F(stopped, 'u'), F(from_standby, 'u'),
    F(failed, 'u'), F(lost, 'u'), F(stale, 'u'), F(resent, 'u'), F(suspect_buffers, 'u'),
    F(takeover_ns, 'u'), F(kernel, 's'), F(message, 's'), F(kind, 'u'), F(number, 'u'),
    F(time_ns, 'u'), END};
#undef T
#define T bh_memory_info
TABLE(bh_memory_info) = {
    F(chunks, 'u'), F(buffers, 'u'), F(bytes_buffers, 'u'), F(bytes_used, 'u'),
    F(bytes_leaving, 'u'), F(bytes_reserved, 'u'), F(bytes_free, 'u'), F(largest_free, 'u'),
    F(bytes_unused, 'u'), F(limit, 'u'), F(peak_buffers, 'u'), F(peak_reserved, 'u'),
    F(refusals, 'u'), F(bytes_modules, 'u'), F(managed_buffers, 'u'), F(managed_bytes, 'u'),
    F(managed_to_device, 'u'), F(managed_to_host, 'u'), END};
#undef T
#define T bh_memory_tag
TABLE(bh_memory_tag) = {
    F(tag, 's'), F(bytes, 'u'), F(buffers, 'u'), F(peak, 'u'), F(limit, 'u'), F(allocations, 'u'),
    END};
#undef T
#define T bh_kernel_info
TABLE(bh_kernel_info) = {
    F(name, 's'), F(param_count, 'u'), F(param_bytes, 'u'), F(static_shared, 'u'),
    F(local_bytes, 'u'), F(registers, 'u'), F(max_threads, 'u'), F(quarantined, 'u'),
    F(required_block, 'a'), F(faults, 'u'), F(executor, 'u'), F(native_instructions, 'u'),
    F(handled_instructions, 'u'), F(compile_us, 'u'), F(executor_note, 's'), END};
#undef T
#define T bh_occupancy
TABLE(bh_occupancy) = {
    F(blocks_per_multiprocessor, 'u'), F(resident_blocks, 'u'), F(occupancy, 'd'),
    F(recommended_block, 'u'), F(recommended_grid, 'u'), F(max_threads, 'u'),
    F(max_dynamic_shared, 'u'), F(max_cluster, 'u'), END};
#undef T
#define T bh_ticket_info
TABLE(bh_ticket_info) = {
    F(status, 'i'), F(generation, 'u'), F(timed, 'u'), F(lane_index, 'u'), F(queued_ns, 'u'),
    F(waiting_ns, 'u'), F(device_ns, 'u'), END};
#undef T
#define T bh_finding
TABLE(bh_finding) = {
    F(kind, 's'), F(bytes, 'u'), F(address, 'u'), F(global, 'u'), F(count, 'u'), F(kernel, 's'),
    F(message, 's'), F(fix, 's'), {"line", 'u', offsetof(bh_finding, here.line), 4},
    {"source_line", 'u', offsetof(bh_finding, here.source_line), 4},
    {"file", 's', offsetof(bh_finding, here.file), sizeof(((bh_finding_place *)0)->file)},
    {"block", 'a', offsetof(bh_finding, here.block), 12},
    {"thread", 'a', offsetof(bh_finding, here.thread), 12}, END};
#undef T
#define T bh_binary_info
TABLE(bh_binary_info) = {
    F(output, 'u'), F(compiler, 's'), F(arch, 's'), F(why, 's'), F(cache, 'u'), F(name_count, 'u'),
    F(compile_ns, 'u'), END};
#undef T
#define T bh_buffer_info
TABLE(bh_buffer_info) = {
    F(type, 'u'), F(count, 'u'), F(bytes, 'u'), F(address, 'u'), F(read_only_address, 'u'),
    F(suspect, 'u'), F(is_view, 'u'), F(suspect_offset, 'u'), F(suspect_bytes, 'u'),
    F(pointer, 'u'), F(flags, 'u'), END};
#undef T
#define T bh_compiler_entry
TABLE(bh_compiler_entry) = {
    F(usable, 'u'), F(compiler, 'u'), F(version, 's'), F(path, 's'), F(why, 's'), END};
#undef T
#define T bh_preflight
TABLE(bh_preflight) = {
    F(grid, 'a'), F(block, 'a'), F(cluster, 'a'), F(static_shared, 'u'), F(dynamic_shared, 'u'),
    F(resident_blocks, 'u'), F(fits_grid, 'a'), F(fits_block, 'a'), F(kernel, 's'), F(error, 'e'),
    END};
#undef T
/* clang-format on */

LAYOUT(device_info, bh_device_info);
LAYOUT(device_limits, bh_device_limits);
LAYOUT(health, bh_health);
LAYOUT(loss, bh_loss);
LAYOUT(memory_info, bh_memory_info);
LAYOUT(memory_tag, bh_memory_tag);
LAYOUT(kernel_info, bh_kernel_info);
LAYOUT(occupancy, bh_occupancy);
LAYOUT(ticket_info, bh_ticket_info);
LAYOUT(finding, bh_finding);
LAYOUT(binary_info, bh_binary_info);
LAYOUT(buffer_info, bh_buffer_info);
LAYOUT(compiler_entry, bh_compiler_entry);
LAYOUT(preflight, bh_preflight);

static PyObject *array_value(const field *what, const uint8_t *at) {
    Py_ssize_t count = what->bytes / 4;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        uint32_t value;
        memcpy(&value, at + i * 4, 4);
        PyTuple_SET_ITEM(tuple, i, PyLong_FromUnsignedLong(value));
    }
    return tuple;
}

static PyObject *value_of(const field *what, const uint8_t *data) {
    const uint8_t *at = data + what->offset;
    uint64_t wide = 0;
    double number;
    switch (what->kind) {
    case 's': {
        size_t length = strnlen((const char *)at, what->bytes);
        return PyUnicode_DecodeUTF8((const char *)at, (Py_ssize_t)length, "replace");
    }
    case 'a':
        return array_value(what, at);
    case 'd':
        memcpy(&number, at, sizeof number);
        return PyFloat_FromDouble(number);
    case 'e': {
        bh_error error;
        memcpy(&error, at, sizeof error);
        return error.status ? error_object(&error) : Py_NewRef(Py_None);
    }
    case 'i': {
        int32_t narrow;
        memcpy(&narrow, at, 4);
        return PyLong_FromLong(narrow);
    }
    default:
        memcpy(&wide, at, what->bytes);
        return PyLong_FromUnsignedLongLong(wide);
    }
}

PyObject *struct_dict(const layout *kind, const void *data) {
    PyObject *dict = PyDict_New();
    for (const field *at = kind->fields; dict && at->name; at++) {
        PyObject *value = value_of(at, data);
        if (!value || PyDict_SetItemString(dict, at->name, value)) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* _core.layouts: what this file says of the structs, for the comparison with bulkhead-api.json. */
int structs_init(PyObject *module) {
    static const layout *const all[] = {
        &layout_device_info,    &layout_device_limits, &layout_health,      &layout_loss,
        &layout_memory_info,    &layout_memory_tag,    &layout_kernel_info, &layout_occupancy,
        &layout_ticket_info,    &layout_finding,       &layout_binary_info, &layout_buffer_info,
        &layout_compiler_entry, &layout_preflight};
    PyObject *layouts = PyDict_New();
    for (size_t i = 0; layouts && i < sizeof all / sizeof *all; i++) {
        PyObject *fields = PyDict_New();
        for (const field *at = all[i]->fields; fields && at->name; at++) {
            PyObject *place =
                Py_BuildValue("(CII)", at->kind, (unsigned)at->offset, (unsigned)at->bytes);
            if (!place || PyDict_SetItemString(fields, at->name, place)) Py_CLEAR(fields);
            Py_XDECREF(place);
        }
        PyObject *entry = fields ? Py_BuildValue("(nN)", (Py_ssize_t)all[i]->bytes, fields) : NULL;
        if (!entry || PyDict_SetItemString(layouts, all[i]->name, entry)) Py_CLEAR(layouts);
        Py_XDECREF(entry);
    }
    return layouts ? PyModule_AddObject(module, "layouts", layouts) : -1;
}
