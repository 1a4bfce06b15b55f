/* SPDX-License-Identifier: Apache-2.0 */
/* What BH_ARGS accepts, as C and as C++: each has its size and its bytes, and each call that takes
 * bh_args takes the list. Nothing is opened: the calls are made with no kernel and refuse it. */
#include <bulkhead.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(const char *what, int holds) {
    if (!holds) printf("%s\n", what), failures++;
}

static void expect_value(const char *what, bh_arg arg, const void *bytes, size_t size) {
    expect(what,
           arg.kind == BH_ARG_VALUE && arg.size == size && memcmp(arg.u.value, bytes, size) == 0);
}

#define NUMBER(type, number)                                                                       \
    do {                                                                                           \
        type value = (number);                                                                     \
        const type fixed = (number);                                                               \
        volatile type changing = (number);                                                         \
        expect_value(#type, BH_ARG(value), &value, sizeof value);                                  \
        expect_value("const " #type, BH_ARG(fixed), &value, sizeof value);                         \
        expect_value("volatile " #type, BH_ARG(changing), &value, sizeof value);                   \
    } while (0)

enum color { RED = 1, GREEN = 2 };

static void buffers_and_structs(void) {
    bh_buffer b = {77};
    struct pair {
        float x, y;
        int z[20];
    } pair = {1, 2, {3}};
    bh_arg in = BH_ARG(BH_IN(b)), out = BH_OUT(b), inout = BH_INOUT(b);
    expect("BH_IN", in.kind == BH_ARG_BUFFER && in.access == BH_ACCESS_IN && in.u.buffer.handle.id == 77);
    expect("BH_OUT", out.kind == BH_ARG_BUFFER && out.access == BH_ACCESS_OUT);
    expect("BH_INOUT", inout.kind == BH_ARG_BUFFER && inout.access == BH_ACCESS_INOUT);
    bh_arg least = BH_ARG(BH_IN_AT_LEAST(b, 100));
    expect("BH_IN_AT_LEAST", least.kind == BH_ARG_BUFFER && least.access == BH_ACCESS_IN &&
                                 least.u.buffer.handle.id == 77 && least.u.buffer.at_least == 100);
    bh_arg value = BH_ARG(BH_VALUE(&pair, sizeof pair));
    expect("BH_VALUE",
           value.kind == BH_ARG_DATA && value.size == sizeof pair && value.u.data == &pair);
    uint64_t null = 0;
    expect_value("BH_NULL", BH_ARG(BH_NULL), &null, sizeof null);
}

static void calls(void) {
    bh_kernel kernel = {0};
    bh_sequence sequence = {0};
    bh_buffer b = {0};
    bh_prepared prepared;
    bh_ticket ticket;
    enum color color = GREEN;
    uint32_t n = 10;
    expect("bh_launch", bh_launch(kernel, BH_GRID(n, 256), BH_ARGS(2.0f, BH_IN(b), n, color), NULL,
                                  &ticket) == BH_E_INVALID);
    expect("bh_launch",
           bh_launch(kernel, BH_GRID(n, 256), BH_ARGS(BH_NULL, n), NULL, NULL) == BH_E_INVALID);
    expect("bh_prepare", bh_prepare(kernel, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(n), NULL,
                                    &prepared) == BH_E_INVALID);
    expect("bh_sequence_launch",
           bh_sequence_launch(sequence, kernel, BH_GRID(n, 256), BH_ARGS(true, 'c'), NULL, NULL) ==
               BH_E_INVALID);
    expect("BH_NO_ARGS", bh_launch(kernel, BH_GRID(1, 1), BH_NO_ARGS, NULL, NULL) == BH_E_INVALID);
    bh_args many = BH_NO_ARGS;
    expect("bh_args", bh_launch(kernel, BH_GRID(1, 1), many, NULL, NULL) == BH_E_INVALID);
}

#ifdef __cplusplus
#include <vector>

enum class wide : uint64_t { value = 0x1122334455667788 };
struct float4 {
    float x, y, z, w;
};
struct owner { /* as classes that own a buffer have it */
    bh_buffer handle;
    operator bh_buffer() const {
        return handle;
    }
};
template <> struct bulkhead::is_argument<float4> : std::true_type {};

static void kept_lists() {
    auto list = BH_ARGS(1, 2.5, 'x', wide::value);
    bh_args args = list;
    expect("auto list", args.count == 4 && args.list == list.list && args.list[1].size == 8);
    uint64_t word = 0x1122334455667788;
    expect_value("enum class", args.list[3], &word, 8);
    expect("launch of a kept list",
           bh_launch(bh_kernel{0}, BH_GRID(1, 1), list, NULL, nullptr) == BH_E_INVALID);
    const auto &extended = BH_ARGS(1);
    args = extended;
    expect("extended list", args.count == 1);

    float4 four = {1, 2, 3, 4};
    expect_value("a struct that is_argument names", BH_ARG(four), &four, sizeof four);
    owner mine = {{5}};
    expect("BH_IN of an owner", BH_ARG(BH_IN(mine)).u.buffer.handle.id == 5);
    std::vector<bool> bits(1, true);
    bool yes = bits[0];
    expect_value("bool", BH_ARG(yes), &yes, 1);
    bh_status (*launch)(bh_kernel, bh_shape, bh_args, const bh_launch_options *, bh_ticket *) =
        &bh_launch;
    auto *same = &bh_launch; /* one function, not a set of overloads */
    expect("&bh_launch", launch == same);
}
#endif

int main(void) {
    NUMBER(bool, true);
    NUMBER(char, 'c');
    NUMBER(signed char, -3);
    NUMBER(unsigned char, 200);
    NUMBER(short, -300);
    NUMBER(unsigned short, 60000);
    NUMBER(int, -70000);
    NUMBER(unsigned int, 4000000000u);
    NUMBER(long, -5000000000);
    NUMBER(unsigned long, 5000000000u);
    NUMBER(long long, -5000000000);
    NUMBER(unsigned long long, 5000000000u);
    NUMBER(float, 1.5f);
    NUMBER(double, -2.5);
    NUMBER(uint64_t, UINT64_MAX);
    NUMBER(enum color, GREEN);
    buffers_and_structs();
    calls();
#ifdef __cplusplus
    kept_lists();
#endif
    return failures != 0;
}
