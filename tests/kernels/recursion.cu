// SPDX-License-Identifier: Apache-2.0
// Functions that call themselves, pointers to functions, virtual functions, local arrays.

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

// RUN recursion_ackermann n=64 grid=1 block=64 exact
extern "C" __global__ void recursion_ackermann(const unsigned *in, unsigned *out, unsigned n) {
    out[threadIdx.x] = ackermann(threadIdx.x % 3, in[threadIdx.x] % 5);
}

__device__ __noinline__ void quick_sort(unsigned *keys, int low, int high) {
    if (low >= high) return;
    unsigned pivot = keys[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (keys[i] < pivot) i++;
        while (keys[j] > pivot) j--;
        if (i <= j) {
            unsigned k = keys[i];
            keys[i++] = keys[j], keys[j--] = k;
        }
    }
    quick_sort(keys, low, j);
    quick_sort(keys, i, high);
}

// RUN recursion_quick_sort n=1024 grid=2 block=16 exact
extern "C" __global__ void recursion_quick_sort(const unsigned *in, unsigned *out, unsigned n) {
    unsigned keys[32], base = (blockIdx.x * 16 + threadIdx.x) * 32;
    for (int k = 0; k < 32; k++) keys[k] = in[base + k];
    quick_sort(keys, 0, 31);
    for (int k = 0; k < 32; k++) out[base + k] = keys[k];
}

__device__ __noinline__ int queens(int size, unsigned columns, unsigned left, unsigned right) {
    int found = 0;
    unsigned full = (1u << size) - 1;
    if (columns == full) return 1;
    for (unsigned open = full & ~(columns | left | right); open; open &= open - 1) {
        unsigned bit = open & -open;
        found += queens(size, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return found;
}

// RUN recursion_queens n=32 grid=1 block=6 exact
extern "C" __global__ void recursion_queens(const unsigned *in, unsigned *out, unsigned n) {
    unsigned bit = 1u << threadIdx.x; // the first queen
    out[threadIdx.x] = (unsigned)queens(6, bit, bit << 1, bit >> 1);
}

typedef unsigned (*operation)(unsigned, unsigned);
__device__ __noinline__ unsigned op_add(unsigned a, unsigned b) { return a + b; }
__device__ __noinline__ unsigned op_mix(unsigned a, unsigned b) { return (a ^ b) * 16777619u; }
__device__ __noinline__ unsigned op_turn(unsigned a, unsigned b) { return a << (b & 31) | a >> (31 - (b & 31)) >> 1; }
__device__ operation operations[] = {op_add, op_mix, op_turn};

// RUN function_pointers n=1024 grid=4 block=256 exact
extern "C" __global__ void function_pointers(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
    for (int k = 0; k < 8; k++) v = operations[(v + k) % 3](v, i + k);
    out[i] = v;
}

struct Shape {
    __device__ virtual unsigned area() const = 0;
    __device__ virtual unsigned corners() const { return 4; }
};
struct Square : Shape {
    unsigned side;
    __device__ Square(unsigned s) : side(s) {}
    __device__ unsigned area() const override { return side * side; }
};
struct Triangle : Shape {
    unsigned base, height;
    __device__ Triangle(unsigned b, unsigned h) : base(b), height(h) {}
    __device__ unsigned area() const override { return base * height / 2; }
    __device__ unsigned corners() const override { return 3; }
};

__device__ __noinline__ unsigned measure(const Shape &shape) { return shape.area() * 10 + shape.corners(); }

// RUN virtual_functions n=512 grid=2 block=256 exact
extern "C" __global__ void virtual_functions(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    Square square(in[i] & 1023);
    Triangle triangle(in[i] & 255, in[i] >> 24);
    const Shape &chosen = in[i] & 0x100 ? (const Shape &)square : (const Shape &)triangle;
    out[i] = measure(chosen);
}

// RUN interpreter n=512 grid=2 block=256 exact
extern "C" __global__ void interpreter(const unsigned *in, unsigned *out, unsigned n) {
    // A machine with a stack; the words of the input are its program.
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, stack[16];
    int top = 0;
    stack[0] = i;
    for (unsigned pc = 0; pc < 40; pc++) {
        unsigned code = in[(i + pc) % n];
        switch (code % 7) {
        case 0: case 1: if (top < 15) stack[++top] = code >> 3; break;
        case 2: if (top > 0) { stack[top - 1] += stack[top]; top--; } break;
        case 3: if (top > 0) { stack[top - 1] *= stack[top] | 1; top--; } break;
        case 4: if (top > 0) { stack[top - 1] ^= stack[top]; top--; } break;
        case 5: stack[top] = ~stack[top]; break;
        default: if (top < 15) { stack[top + 1] = stack[top] >> 5; top++; } break;
        }
    }
    unsigned r = 0;
    while (top >= 0) r = r * 31 + stack[top--];
    out[i] = r;
}

// RUN heap_trees n=512 grid=1 block=32 exact
struct Node {
    unsigned key;
    Node *children[2];
};
extern "C" __global__ void heap_trees(const unsigned *in, unsigned *out, unsigned n) {
    // A search tree of 16 keys for each thread, from new, walked without recursion, deleted.
    Node *root = nullptr;
    for (unsigned k = 0; k < 16; k++) {
        Node *node = new Node{in[threadIdx.x * 16 + k], {nullptr, nullptr}}, **at = &root;
        while (*at) at = &(*at)->children[node->key >= (*at)->key];
        *at = node;
    }
    Node *path[16], *now = root;
    int depth = 0;
    for (unsigned k = 0; k < 16; k++) {
        for (; now; now = now->children[0]) path[depth++] = now;
        Node *node = path[--depth];
        out[threadIdx.x * 16 + k] = node->key;
        now = node->children[1];
        delete node;
    }
}
