/* SPDX-License-Identifier: Apache-2.0 */
/* Textures, surfaces and tensor maps of a launch: their memory is used like that of buffers, and
 * what they are goes to the worker behind the parameters. */
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/launch/launch.h"
#include "client/texture/texture.h"

#define REFUSE bh__launch_refuse

typedef struct bh__object_list {
    uint32_t count;
    bh__use uses[BH_OBJECTS_MAX];
    bh__launch_object records[BH_OBJECTS_MAX];
} bh__object_list;

static uint32_t index_of(const bh__launch *self, const bh__blob_param *param) {
    return (uint32_t)(param - self->kernel->params);
}

/* What an argument can be, by kind from BH_ARG_TEXTURE on. */
static const struct sort {
    const char *name;
    const char *declared; /* its parameter in a kernel */
    uint32_t handle;      /* BH__KIND_... */
    uint32_t bytes;       /* of the parameter */
    uint32_t access;      /* 0: the argument says */
} sorts[] = {
    {"texture", "declare the parameter as cudaTextureObject_t", BH__KIND_TEXTURE, 8, BH_ACCESS_IN},
    {"surface", "declare the parameter as cudaSurfaceObject_t", BH__KIND_SURFACE, 8,
     BH_ACCESS_INOUT},
    {"tensor map", "declare the parameter as const __grid_constant__ CUtensorMap",
     BH__KIND_TENSOR_MAP, BH__TENSOR_MAP_BYTES, 0}};

static bh_status check_parameter(bh__launch *self, const bh__blob_param *param,
                                 const struct sort *sort) {
    bool map = sort->bytes == BH__TENSOR_MAP_BYTES;
    if (param->bytes == sort->bytes && !param->pointer &&
        (map ? param->tensor_map : !param->scalar))
        return BH_OK;
    return REFUSE(self, BH_REASON_ARGUMENT_KIND, sort->bytes, param->bytes, BH_E_LAUNCH,
                  sort->declared,
                  "kernel %s: argument %u is a %s, its parameter is %s of %u bytes at offset %u",
                  self->kernel->name, index_of(self, param), sort->name,
                  param->pointer ? "a pointer" : "a value", param->bytes, param->offset);
}

static bh_status refuse_handle(bh__launch *self) {
    self->reason = BH_REASON_BUFFER_HANDLE;
    bh__launch_record(self, BH_REASON_BUFFER_HANDLE, 0, 0);
    return bh__last()->status;
}

static bh_status refuse_access(bh__launch *self, const bh__blob_param *param, uint32_t access) {
    return REFUSE(self, BH_REASON_ARGUMENT_KIND, access, BH_ACCESS_INOUT, BH_E_INVALID,
                  "use BH_TENSOR_IN, BH_TENSOR_OUT or BH_TENSOR_INOUT",
                  "kernel %s: the access of argument %u (a tensor map) is %u", self->kernel->name,
                  index_of(self, param), access);
}

/* The use is of the whole buffer: a kernel can change its map. */
static uint32_t use_access(const bh__launch_object *record, uint32_t access) {
    uint64_t bytes;
    bool fills = record->kind == BH__OBJECT_TENSOR && bh__tensor_is_dense(&record->tensor) &&
                 bh__tensor_bytes(&record->tensor, &bytes) && bytes == record->bytes;
    return access == BH_ACCESS_OUT && !fills ? access | BH__ACCESS_GAPS : access;
}

bh_status bh__object_take(bh__launch *self, const bh__blob_param *param, const bh_arg *arg) {
    const struct sort *sort = &sorts[arg->kind - BH_ARG_TEXTURE];
    uint32_t access = sort->access ? sort->access : arg->access;
    if (check_parameter(self, param, sort) != BH_OK) return bh__last()->status;
    if (access - BH_ACCESS_IN > BH_ACCESS_INOUT - BH_ACCESS_IN)
        return refuse_access(self, param, access);
    const bh__object *object =
        bh__handle_get(self->device, arg->u.object, sort->handle, sort->name);
    if (!object) return refuse_handle(self);
    if (!self->objects) self->objects = calloc(1, sizeof *self->objects);
    bh__object_list *list = self->objects;
    if (!list)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a launch of kernel %s with textures",
                          self->kernel->name);
    if (list->count == BH_OBJECTS_MAX)
        return REFUSE(self, BH_REASON_ARGUMENT_COUNT, list->count + 1, BH_OBJECTS_MAX, BH_E_LAUNCH,
                      "use fewer, or layers of one image",
                      "kernel %s: more than %d textures, surfaces and tensor maps",
                      self->kernel->name, BH_OBJECTS_MAX);
    bh__launch_object *record = &list->records[list->count];
    *record = object->record;
    record->offset = param->offset;
    list->uses[list->count++] = (bh__use){.memory = object->memory,
                                          .offset = object->offset,
                                          .bytes = record->bytes,
                                          .access = use_access(record, access)};
    return BH_OK;
}

/* Where the objects begin: behind the parameters, aligned. */
static uint32_t objects_at(const bh__kernel *kernel) {
    return (kernel->shape.param_bytes + 7) / 8 * 8;
}

static bh_status make_room(bh__launch *self, uint32_t bytes) {
    bool owned = self->params != self->inline_params;
    uint32_t fits = bh__params_that_fit(self->device->queue.length);
    uint32_t limit = fits < BH__MAX_PARAM_BYTES ? fits : BH__MAX_PARAM_BYTES;
    if (bytes > limit)
        return REFUSE(
            self, BH_REASON_PARAMETER_BYTES, bytes, limit, BH_E_LAUNCH,
            "pass the data in a buffer, or open the device with a longer queue",
            "kernel %s has %u bytes of parameters, textures and tensor maps; a request takes %u",
            self->kernel->name, bytes, limit);
    if (!owned && bytes <= sizeof self->inline_params) return BH_OK;
    uint8_t *room = malloc(bytes);
    if (!room)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a launch of kernel %s with %u bytes of parameters",
                          self->kernel->name, bytes);
    memcpy(room, self->params, self->kernel->shape.param_bytes);
    if (owned) free(self->params);
    self->params = room;
    return BH_OK;
}

/* As bh__arguments_place passes buffers. */
static void pass_inputs_read_only(bh__launch *self) {
    bh__object_list *list = self->objects;
    for (uint32_t i = 0; i < list->count; i++) {
        const bh__use *use = &list->uses[i];
        bh__launch_object *record = &list->records[i];
        if (record->kind != BH__OBJECT_TENSOR || use->access != BH_ACCESS_IN ||
            bh__use_is_written(self->uses, self->use_count, use))
            continue;
        record->address = record->tensor.address = use->memory->read_only_address + use->offset;
    }
}

bh_status bh__objects_place(bh__launch *self) {
    const bh__object_list *list = self->objects;
    bool writable = self->options->flags & BH_LAUNCH_WRITABLE_INPUTS;
    for (uint32_t i = 0; i < list->count; i++) self->uses[self->use_count++] = list->uses[i];
    bh__arguments_place(self->kernel, self->uses, self->use_count, writable, self->params);
    if (!writable) pass_inputs_read_only(self);
    uint32_t at = objects_at(self->kernel), bytes = list->count * (uint32_t)sizeof *list->records;
    uint32_t end = at + bytes + (uint32_t)sizeof(uint64_t);
    uint64_t count = list->count;
    bh_status status = make_room(self, end);
    if (status != BH_OK) return status;
    memset(self->params + self->kernel->shape.param_bytes, 0, at - self->kernel->shape.param_bytes);
    memcpy(self->params + at, list->records, bytes);
    memcpy(self->params + at + bytes, &count, sizeof count);
    for (uint32_t i = 0; i < list->count; i++)
        memset(self->params + list->records[i].offset, 0,
               bh__launch_object_bytes(&list->records[i]));
    self->body.param_bytes = end;
    return BH_OK;
}

bool bh__objects_have(const bh__launch *self, const bh__blob_param *param, const uint8_t *params) {
    uint32_t end = self->body.param_bytes - (uint32_t)sizeof(uint64_t);
    for (uint32_t at = objects_at(self->kernel); at < end;
         at += (uint32_t)sizeof(bh__launch_object)) {
        uint32_t offset;
        memcpy(&offset, params + at + offsetof(bh__launch_object, offset), sizeof offset);
        if (offset == param->offset) return true;
    }
    return false;
}
