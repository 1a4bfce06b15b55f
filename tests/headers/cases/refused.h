/* SPDX-License-Identifier: Apache-2.0 */
/* What the statements of refused.c.txt and refused.cpp.txt are about. */
#include <bulkhead.h>

#ifdef __cplusplus
struct owner {
    bh_buffer handle;
    operator bh_buffer() const {
        return handle;
    }
};
struct member {
    int field;
};
struct text {
    text() {
    }
    char bytes[8];
};
inline void take(bh_args) {
}
#endif
struct two {
    float x, y;
};
struct everything {
    bh_device device;
    bh_lane lane;
    bh_module module_;
    bh_kernel kernel;
    bh_buffer buffer;
    bh_ticket ticket;
    bh_prepared prepared;
    bh_sequence sequence;
    bh_binary binary;
    bh_host_pool pool;
    bh_texture texture;
    bh_surface surface;
    bh_tensor_map map;
    float *pointer;
    int array[4];
    struct two two;
    long double wide;
};
extern struct everything my;
