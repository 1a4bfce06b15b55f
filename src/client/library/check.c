/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of library calls. All that can be known before the call is queued is refused here. */
#include <stdio.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/library/library.h"

typedef unsigned long long ull;

/* ---- the request ---- */

static bh_status take_request(const bh_request *given, bh__library_call *out) {
    out->operation = bh__operation_find(given->kind, &out->library);
    if (!out->operation)
        return bh__refuse(BH_E_UNSUPPORTED, "use a kind that the headers of this version name",
                          "requests of kind %u are not known to this version", given->kind);
    const bh__library *library = &bh__libraries[out->library];
    memset(out->request.bytes, 0, library->request_bytes);
    out->request.head.request = (bh_request){library->request_bytes, given->kind};
    return bh__options_take(given, out->request.bytes, out->operation->name);
}

static bh_status check_scalar(const bh__library_call *self, const char *name, bh_scalar value,
                              bool used, bool real) {
    if (!used && (value.re != 0 || value.im != 0))
        return bh__refuse(BH_E_INVALID, "leave it 0", "%s has no %s; it is %g + %gi",
                          self->operation->name, name, value.re, value.im);
    bool complex = !real && bh__type_is_complex(self->types[0]);
    if (complex || value.im == 0) return BH_OK;
    return bh__refuse(BH_E_INVALID, "leave its imaginary part 0",
                      "%s: %s is %g + %gi and must be real", self->operation->name, name, value.re,
                      value.im);
}

/* The operand or field that the library's operations have at this place of a request. */
static const char *field_at(const bh__library *library, size_t at) {
    for (uint32_t i = 0; i < library->count; i++) {
        const bh__operation *operation = &library->operations[i];
        for (uint32_t k = 0; k < operation->field_count; k++) {
            if (at - operation->fields[k].at < operation->fields[k].bytes)
                return operation->fields[k].name;
        }
        for (uint32_t k = 0; k < operation->operand_count; k++) {
            const bh__operand *operand = &operation->operands[k];
            if (at - operand->at < bh__operand_bytes(operand)) return operand->name;
        }
    }
    return "a field";
}

static bool has_field(const bh__operation *operation, size_t at) {
    for (uint32_t k = 0; k < operation->field_count; k++) {
        if (at - operation->fields[k].at < operation->fields[k].bytes) return true;
    }
    for (uint32_t k = 0; k < operation->operand_count; k++) {
        const bh__operand *operand = &operation->operands[k];
        if (at - operand->at < bh__operand_bytes(operand)) return true;
    }
    return false;
}

/* An operand that an operation does not have is set by mistake. */
static bh_status check_unused(const bh__library_call *self) {
    const bh__library *library = &bh__libraries[self->library];
    for (size_t at = sizeof(bh__request_head); at < library->request_bytes; at++) {
        if (self->request.bytes[at] && !has_field(self->operation, at))
            return bh__refuse(BH_E_INVALID, "leave it zero", "%s has no %s, but it is set",
                              self->operation->name, field_at(library, at));
    }
    return BH_OK;
}

/* Numbers and choices. */
static bh_status check_values(const bh__library_call *self) {
    for (uint32_t i = 0; i < self->operation->field_count; i++) {
        const bh__field *field = &self->operation->fields[i];
        uint64_t value = 0;
        if (field->bytes != 4 && field->bytes != 8) continue;
        memcpy(&value, self->request.bytes + field->at, field->bytes); /* little-endian */
        if (value >= field->low && value <= field->high) continue;
        return bh__refuse(BH_E_INVALID, "use a value that the header names for it",
                          "%s: %s is %llu; it must be %llu to %llu", self->operation->name,
                          field->name, (ull)value, (ull)field->low, (ull)field->high);
    }
    return BH_OK;
}

static bh_status check_fields(const bh__library_call *self) {
    const bh__operation *operation = self->operation;
    const bh__request_head *request = &self->request.head;
    if (request->flags & ~operation->flags)
        return bh__refuse(BH_E_INVALID, "use only the flags that the operation's description names",
                          "%s: flags is 0x%x; 0x%x of it are not for this operation",
                          operation->name, request->flags, request->flags & ~operation->flags);
    bh_status status = bh__reserved_check(request->reserved, operation->name);
    if (status == BH_OK) status = check_unused(self);
    if (status == BH_OK) status = check_values(self);
    if (status == BH_OK)
        status =
            check_scalar(self, "alpha", request->alpha, operation->alpha, operation->real_alpha);
    if (status == BH_OK)
        status = check_scalar(self, "beta", request->beta, operation->beta, operation->real_beta);
    return status;
}

/* ---- operands ---- */

static const bh__operand *operand_of(const bh__library_call *self, uint32_t index) {
    return &self->operation->operands[index];
}

static bh_vector vector_of(const bh__library_call *self, uint32_t index) {
    bh_vector vector;
    memcpy(&vector, self->request.bytes + operand_of(self, index)->at, sizeof vector);
    return vector;
}

static bh_matrix matrix_of(const bh__library_call *self, uint32_t index) {
    bh_matrix matrix;
    memcpy(&matrix, self->request.bytes + operand_of(self, index)->at, sizeof matrix);
    return matrix;
}

static bh_array array_of(const bh__library_call *self, uint32_t index) {
    bh_array array;
    memcpy(&array, self->request.bytes + operand_of(self, index)->at, sizeof array);
    return array;
}

/* All forms begin with their buffer. */
bh_buffer bh__library_buffer(const bh__library_call *self, uint32_t operand) {
    bh_buffer buffer;
    memcpy(&buffer, self->request.bytes + operand_of(self, operand)->at, sizeof buffer);
    return buffer;
}

static const char *type_list(uint32_t types, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    for (bh_type type = 1; type < 32; type++) {
        if (types & BH__TYPE_BIT(type) && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
                                     bh_type_name(type));
    }
    return out;
}

static bh_status refuse_type(const bh__library_call *self, uint32_t index, const char *wanted) {
    return bh__refuse(BH_E_INVALID, "pass a buffer of such elements, or a view of one",
                      "%s: the elements of %s are %s; they must be %s", self->operation->name,
                      operand_of(self, index)->name, bh_type_name(self->types[index]), wanted);
}

static bh_status check_type(const bh__library_call *self, uint32_t index) {
    const bh__operand *operand = operand_of(self, index);
    bh_type type = self->types[index], first = self->types[0];
    char list[96];
    if (index == 0) {
        uint32_t types = self->operation->types;
        return types & BH__TYPE_BIT(type)
                   ? BH_OK
                   : refuse_type(self, index, type_list(types, list, sizeof list));
    }
    switch (operand->type) {
    case BH__TYPE_REAL:
        return type == bh__real_type(first)
                   ? BH_OK
                   : refuse_type(self, index, bh_type_name(bh__real_type(first)));
    case BH__TYPE_COMPLEX:
        return type == bh__complex_type(first)
                   ? BH_OK
                   : refuse_type(self, index, bh_type_name(bh__complex_type(first)));
    case BH__TYPE_INDEX:
        return type == BH_I64 ? BH_OK : refuse_type(self, index, bh_type_name(BH_I64));
    case BH__TYPE_INFO:
        return type == BH_I32 ? BH_OK : refuse_type(self, index, bh_type_name(BH_I32));
    case BH__TYPE_OWN:
        return BH_OK;
    case BH__TYPE_PRODUCT:
        if (bh__product_type_fits(first, type)) return BH_OK;
        return refuse_type(self, index,
                           first == BH_F16    ? "f16 or f32"
                           : first == BH_BF16 ? "bf16 or f32"
                           : first == BH_I8   ? "i32"
                                              : bh_type_name(first));
    default:
        return type == first ? BH_OK : refuse_type(self, index, bh_type_name(first));
    }
}

/* The sizes that the letters of shapes stand for, and the operand that said so. */
typedef struct sizes {
    uint64_t value[26];
    const char *from[26], *what[26];
} sizes;

static bh_status check_smaller(const bh__library_call *self, const sizes *known,
                               const char *operand, const char *what, uint64_t value) {
    uint64_t m = known->value['m' - 'a'], n = known->value['n' - 'a'], wanted = m < n ? m : n;
    if (value == wanted) return BH_OK;
    return bh__refuse(BH_E_INVALID, "make the sizes of the operands fit one another",
                      "%s: %s has %llu %s; it must have %llu, the smaller one of the rows and "
                      "columns of %s",
                      self->operation->name, operand, (ull)value, what, (ull)wanted,
                      known->from['m' - 'a']);
}

static bh_status check_size(const bh__library_call *self, sizes *known, char letter,
                            const char *operand, const char *what, uint64_t value) {
    bool right = self->request.head.flags & bh__libraries[self->library].right;
    if (letter == 's') letter = right ? 'n' : 'm';
    if (letter == '1') {
        if (value == 1) return BH_OK;
        return bh__refuse(BH_E_INVALID, "make it 1", "%s: %s has %llu %s instead of 1",
                          self->operation->name, operand, (ull)value, what);
    }
    if (letter == 'K') return check_smaller(self, known, operand, what, value);
    int i = letter - 'a';
    if (!known->from[i]) {
        known->value[i] = value;
        known->from[i] = operand;
        known->what[i] = what;
        return BH_OK;
    }
    if (known->value[i] == value) return BH_OK;
    return bh__refuse(BH_E_INVALID, "make the sizes of the operands fit one another",
                      "%s: %s has %llu %s, %s has %llu %s; they must be equal",
                      self->operation->name, known->from[i], (ull)known->value[i], known->what[i],
                      operand, (ull)value, what);
}

static bh_status check_rank(const bh__library_call *self, uint32_t index) {
    bh_array array = array_of(self, index);
    if (array.rank == 0 || array.rank > BH_ARRAY_RANK)
        return bh__refuse(BH_E_INVALID, "use 1 to 8 dimensions", "%s: %s has %u dimensions",
                          self->operation->name, operand_of(self, index)->name, array.rank);
    return bh__reserved_check(array.reserved, "bh_array");
}

static bh_status check_shape(const bh__library_call *self, uint32_t index, sizes *known) {
    const bh__operand *operand = operand_of(self, index);
    if (operand->form == BH__FORM_ARRAY) return check_rank(self, index);
    if (operand->form == BH__FORM_VECTOR)
        return check_size(self, known, operand->shape[0], operand->name, "elements",
                          vector_of(self, index).count);
    bh_matrix matrix = matrix_of(self, index);
    const uint32_t all = BH_MATRIX_COLUMN_MAJOR | BH_MATRIX_CONJUGATE;
    if (matrix.flags & ~all)
        return bh__refuse(BH_E_INVALID, "use only BH_MATRIX_... flags",
                          "%s: the flags of %s are 0x%x", self->operation->name, operand->name,
                          matrix.flags);
    bh_status status = bh__reserved_check(matrix.reserved, "bh_matrix");
    if (status == BH_OK)
        status = check_size(self, known, operand->shape[0], operand->name, "rows", matrix.rows);
    if (status == BH_OK)
        status =
            check_size(self, known, operand->shape[1], operand->name, "columns", matrix.columns);
    return status;
}

static bh_status refuse_region(const bh__library_call *self, uint32_t index,
                               bh__region_fault fault) {
    const char *name = operand_of(self, index)->name, *operation = self->operation->name;
    switch (fault) {
    case BH__REGION_OVERLAPS:
        if (operand_of(self, index)->form == BH__FORM_ARRAY)
            return bh__refuse(BH_E_INVALID,
                              "make each stride at least what the smaller ones reach, and "
                              "batch_stride of outputs at least a whole member",
                              "%s: elements of %s overlap one another", operation, name);
        return bh__refuse(BH_E_INVALID,
                          "make stride at least the length of a row (column-major: of a column), "
                          "and batch_stride of outputs at least a whole member",
                          "%s: parts of %s overlap one another", operation, name);
    case BH__REGION_BEFORE:
        return bh__refuse(BH_E_INVALID, "make offset that of element 0, which lies last",
                          "%s: the negative stride of %s leads to before its buffer", operation,
                          name);
    default:
        return bh__refuse(BH_E_UNSUPPORTED, "use sizes, strides and batches below 2^31",
                          "%s: %s is too large for libraries that count in 32 bits", operation,
                          name);
    }
}

/* The bytes of an operand in its buffer. */
static bh_status place(bh__library_call *self, uint32_t index, const bh__buffer *buffer,
                       bh__region *out) {
    const bh__operand *operand = operand_of(self, index);
    const bh__request_head *request = &self->request.head;
    bh__region_fault fault = bh__operand_region(operand, self->request.bytes, out);
    if (fault != BH__REGION_FITS) return refuse_region(self, index, fault);
    uint64_t size = bh__element_bytes(self->types[index]), has = buffer->bytes / size;
    if (out->first > has || out->span > has - out->first)
        return bh__refuse(BH_E_INVALID, "pass a larger buffer, or make the operand smaller",
                          "%s: %s takes elements %llu to %llu; its buffer has %llu",
                          self->operation->name, operand->name, (ull)out->first,
                          (ull)(out->first + out->span), (ull)has);
    uint32_t access = operand->access;
    if (operand->scaled && request->beta.re == 0 && request->beta.im == 0) access = BH_ACCESS_OUT;
    self->ranges[index] = (bh__range){.offset = out->first * size,
                                      .bytes = out->span * size,
                                      .gaps = access == BH_ACCESS_OUT &&
                                              (operand->triangle || !bh__region_is_whole(out))};
    self->args[index] = (bh_arg){.kind = BH_ARG_BUFFER, .access = (uint16_t)access};
    self->args[index].u.buffer.handle = bh__library_buffer(self, index);
    return BH_OK;
}

/* An output may share no element with another operand. */
static bh_status check_overlap(bh__library_call *self, uint32_t one, uint32_t other,
                               const bh__buffer *const *buffers, const bh__region *regions) {
    uint32_t access = self->args[one].access | self->args[other].access;
    if (!(access & BH_ACCESS_OUT) || buffers[one]->memory != buffers[other]->memory) return BH_OK;
    uint64_t size = bh__element_bytes(self->types[one]);
    bh__region a = regions[one], b = regions[other];
    bool alike = size == bh__element_bytes(self->types[other]) &&
                 buffers[one]->offset % size == buffers[other]->offset % size;
    a.first += buffers[one]->offset / size;
    b.first += buffers[other]->offset / size;
    if (alike && !bh__regions_meet(&a, &b)) return BH_OK;
    bool same_start = buffers[one]->offset + self->ranges[one].offset ==
                      buffers[other]->offset + self->ranges[other].offset;
    if (self->operation->in_place && same_start) {
        /* The rest of a longer input has no value afterwards. */
        for (uint32_t i = 0; i < 2; i++) self->args[i ? other : one].access |= BH_ACCESS_OUT;
        return BH_OK;
    }
    uint64_t a_from = buffers[one]->offset + self->ranges[one].offset;
    uint64_t b_from = buffers[other]->offset + self->ranges[other].offset;
    if (!alike && (a_from >= b_from + self->ranges[other].bytes ||
                   b_from >= a_from + self->ranges[one].bytes))
        return BH_OK;
    return bh__refuse(BH_E_INVALID, "write to other elements, or copy an operand first",
                      "%s: %s and %s may share elements, and one of them is written",
                      self->operation->name, operand_of(self, one)->name,
                      operand_of(self, other)->name);
}

/* An optional operand that is not given stands for no bytes of the first one. */
static bool leave_out(bh__library_call *self, uint32_t index, const bh__buffer **buffers,
                      bh__region *regions) {
    const bh__operand *operand = operand_of(self, index);
    if (!operand->optional || bh__library_buffer(self, index).id != 0) return false;
    buffers[index] = buffers[0];
    memset(&regions[index], 0, sizeof regions[index]);
    self->types[index] = 0;
    self->ranges[index] = (bh__range){.in_place = self->operation->in_place};
    self->args[index] = (bh_arg){.kind = BH_ARG_BUFFER, .access = BH_ACCESS_IN};
    self->args[index].u.buffer.handle = bh__library_buffer(self, 0);
    return true;
}

static bh_status check_operands(bh__device *device, bh__library_call *self) {
    const bh__operation *operation = self->operation;
    const bh__buffer *buffers[BH__OPERANDS];
    bh__region regions[BH__OPERANDS];
    sizes known;
    memset(&known, 0, sizeof known);
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < operation->operand_count && status == BH_OK; i++) {
        if (leave_out(self, i, buffers, regions)) continue;
        buffers[i] = bh__handle_get(device, bh__library_buffer(self, i).id, BH__KIND_BUFFER,
                                    operand_of(self, i)->name);
        if (!buffers[i]) return bh__last()->status;
        self->types[i] = buffers[i]->type;
        status = check_type(self, i);
        if (status == BH_OK) status = check_shape(self, i, &known);
        if (status == BH_OK) status = place(self, i, buffers[i], &regions[i]);
        for (uint32_t k = 0; k < i && status == BH_OK; k++)
            status = check_overlap(self, k, i, buffers, regions);
    }
    return status;
}

/* Fields and extents that do not fit one another. */
static bh_status check_fit(const bh__library_call *self) {
    const bh__library *library = &bh__libraries[self->library];
    const char *fix = NULL;
    char text[192];
    if (!library->fits ||
        library->fits(self->operation, self->request.bytes, text, sizeof text, &fix))
        return BH_OK;
    return bh__refuse(BH_E_INVALID, fix, "%s: %s", self->operation->name, text);
}

/* What the library itself cannot do. */
static bh_status ask_library(const bh__library_call *self) {
    const char *fix = NULL;
    const bh__library *library = &bh__libraries[self->library];
    const char *reason =
        library->refuse ? library->refuse(self->operation, self->request.bytes, self->types, &fix)
                        : NULL;
    if (!reason) return BH_OK;
    return bh__refuse(BH_E_UNSUPPORTED, fix, "%s: %s", self->operation->name, reason);
}

bh_status bh__library_take(const bh_request *given, bh__library_call *out) {
    memset(out->types, 0, sizeof out->types);
    bh_status status = take_request(given, out);
    if (status == BH_OK) status = check_fit(out);
    if (status != BH_OK) return status;
    bh__device *device = bh__device_lock(bh__library_buffer(out, 0).id, BH__KIND_BUFFER,
                                         operand_of(out, 0)->name, true);
    if (!device) return bh__last()->status;
    status = check_operands(device, out);
    bh__device_unlock(device);
    if (status == BH_OK) status = check_fields(out);
    if (status == BH_OK) status = ask_library(out);
    if (status != BH_OK) return status;
    bh_arg *rest = out->args + out->operation->operand_count;
    rest[0] = (bh_arg){.kind = BH_ARG_DATA, .size = bh__libraries[out->library].request_bytes};
    rest[0].u.data = out->request.bytes;
    rest[1] = (bh_arg){.kind = BH_ARG_DATA, .size = sizeof out->types};
    rest[1].u.data = out->types;
    return BH_OK;
}
