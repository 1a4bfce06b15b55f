/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers refuse, one thing at a time. */
#ifdef MANAGED
__managed__ int value;
#endif
#ifdef CLUSTER
__global__ void __cluster_dims__(2, 1, 1) clustered() {
}
#endif
#ifdef HEAP
struct link {
    link *next;
};
extern "C" __global__ void chain(link **at) {
    link *first = new link{nullptr};
    *at = new link[3];
    (*at)->next = first;
    if (threadIdx.x == 1) delete first;
    if (threadIdx.x == 2) delete[] * at;
}
#endif
__global__ void nothing() {
}
