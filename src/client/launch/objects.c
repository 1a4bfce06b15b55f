/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and surfaces of a launch: their memory is used like that of buffers, and what they are
 * goes to the worker behind the parameters. */
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/launch/launch.h"
#include "client/texture/texture.h"

#define REFUSE bh__launch_refuse

typedef struct bh__object_list {
    uint32_t count;
    bh__use uses[BH_OBJECTS_MOST];
    bh__launch_object records[BH_OBJECTS_MOST];
} bh__object_list;

static uint32_t index_of(const bh__launch *self, const bh__blob_param *param) {
    return (uint32_t)(param - self->kernel->params);
}

static bh_status check_parameter(bh__launch *self, const bh__blob_param *param, const char *what) {
    if (param->bytes == sizeof(uint64_t) && !param->scalar && !param->pointer) return BH_OK;
    return REFUSE(self, BH_REASON_ARGUMENT_KIND, sizeof(uint64_t), param->bytes, BH_E_LAUNCH,
                  "declare the parameter as cudaTextureObject_t or cudaSurfaceObject_t",
                  "kernel %s: argument %u is a %s, its parameter is %s of %u bytes",
                  self->kernel->name, index_of(self, param), what,
                  param->pointer ? "a pointer" : "a value", param->bytes);
}

static bh_status refuse_handle(bh__launch *self) {
    self->reason = BH_REASON_BUFFER_HANDLE;
    bh__launch_record(self, BH_REASON_BUFFER_HANDLE, 0, 0);
    return bh__last()->status;
}

bh_status bh__object_take(bh__launch *self, const bh__blob_param *param, const bh_arg *arg) {
    bool surface = arg->kind == BH_ARG_SURFACE;
    const char *what = surface ? "surface" : "texture";
    if (check_parameter(self, param, what) != BH_OK) return bh__last()->status;
    const bh__object *object = bh__handle_get(self->device, arg->u.object,
                                              surface ? BH__KIND_SURFACE : BH__KIND_TEXTURE, what);
    if (!object) return refuse_handle(self);
    if (!self->objects) self->objects = calloc(1, sizeof *self->objects);
    bh__object_list *list = self->objects;
    if (!list)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a launch of kernel %s with textures",
                          self->kernel->name);
    if (list->count == BH_OBJECTS_MOST)
        return REFUSE(self, BH_REASON_ARGUMENT_COUNT, list->count + 1, BH_OBJECTS_MOST, BH_E_LAUNCH,
                      "use fewer, or layers of one image",
                      "kernel %s: more than %d textures and surfaces", self->kernel->name,
                      BH_OBJECTS_MOST);
    bh__launch_object *record = &list->records[list->count];
    *record = object->record;
    record->offset = param->offset;
    list->uses[list->count++] = (bh__use){.memory = object->memory,
                                          .offset = object->offset,
                                          .bytes = record->bytes,
                                          .access = surface ? BH_ACCESS_INOUT : BH_ACCESS_IN};
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
        return REFUSE(self, BH_REASON_PARAMETER_BYTES, bytes, limit, BH_E_LAUNCH,
                      "pass the data in a buffer, or open the device with a longer queue",
                      "kernel %s has %u bytes of parameters and textures; a request takes %u",
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

bh_status bh__objects_place(bh__launch *self) {
    const bh__object_list *list = self->objects;
    uint32_t at = objects_at(self->kernel), bytes = list->count * (uint32_t)sizeof *list->records;
    uint32_t end = at + bytes + (uint32_t)sizeof(uint64_t);
    uint64_t count = list->count;
    bh_status status = make_room(self, end);
    if (status != BH_OK) return status;
    memset(self->params + self->kernel->shape.param_bytes, 0, at - self->kernel->shape.param_bytes);
    memcpy(self->params + at, list->records, bytes);
    memcpy(self->params + at + bytes, &count, sizeof count);
    for (uint32_t i = 0; i < list->count; i++) {
        memset(self->params + list->records[i].offset, 0, sizeof(uint64_t));
        self->uses[self->use_count++] = list->uses[i];
    }
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
