struct pair {
    int a;
    float b;
};

extern "C" __attribute__((global)) void squares(int *out, int n) {
    int sum = 0;
    struct pair both = {7, 2.5f};
    for (int i = 0; i < n; i++) {
        int square = i * i;
        sum += square;
    }
    out[0] = sum + both.a;
}
