/* SPDX-License-Identifier: Apache-2.0 */
/* new and delete in kernels. */
struct link {
    link *next;
};
extern "C" __global__ void chain(unsigned *count) {
    link *list = nullptr;
    for (unsigned i = 0; i < threadIdx.x + 3; i++) list = new link{list};
    link *array = new link[3];
    array->next = list;
    for (link *at = array->next; at; count[threadIdx.x]++) {
        link *next = at->next;
        delete at;
        at = next;
    }
    delete[] array;
}
