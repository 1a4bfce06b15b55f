/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers refuse, one thing at a time. */
#ifdef MANAGED
__managed__ int value;
#endif
#ifdef CLUSTER
__global__ void __cluster_dims__(2, 1, 1) clustered() {
}
#endif
__global__ void nothing() {
}
