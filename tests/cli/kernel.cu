__global__ void one(int *to) {
    *to = 1;
}
