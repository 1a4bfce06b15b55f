/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/args.h: how a program writes down shapes and arguments. Stable; part of core.h.
 *
 * BH_GRID(n, block)              enough blocks of `block` threads for n threads
 * BH_SHAPE(gx,gy,gz, bx,by,bz)   any grid and block
 * BH_ARGS(a, b, ...)             1 to 24 arguments (in C++ any number), each one of those below
 * BH_NO_ARGS                     for a kernel without parameters
 * BH_ARG(a)                      one argument, for bh_change and bh_sequence_set
 *
 * x                              a number, bool or enum, passed with the size of its C type
 * BH_IN(b)                       a buffer that the kernel reads
 * BH_OUT(b)                      a buffer that it writes whole, without needing the old contents
 * BH_INOUT(b)                    a buffer that it reads and writes, or writes in part
 * BH_IN_AT_LEAST(b, bytes)       as BH_IN, and the launch is refused if the buffer is smaller
 * BH_OUT_AT_LEAST(b, bytes)      as BH_OUT, likewise
 * BH_INOUT_AT_LEAST(b, bytes)    as BH_INOUT, likewise
 * BH_VALUE(&s, sizeof s)         a struct, read before the call returns
 * BH_NULL                        a null pointer
 * BH_TEXTURE(t), BH_SURFACE(s)   a texture or surface object: texture.h
 * BH_TENSOR_IN(m), _OUT, _INOUT  a tensor map: tensor_map.h
 * BH_HOST_IN(data, bytes),
 *   _OUT, _INOUT                 an array of the program, for bh_dispatch: dispatch.h
 *
 *     bh_status scale(bh_kernel kernel, bh_buffer x, float factor, uint32_t n, bh_ticket *ticket) {
 *         return bh_launch(kernel, BH_GRID(n, 256), BH_ARGS(BH_INOUT(x), factor, n), NULL, ticket);
 *     }
 *
 * The compiler refuses handles, pointers and structs that are passed as they are. In C its message
 * has the name bh_arg_must_be_a_number_or_BH_IN_OUT_INOUT_VALUE.
 *
 * In C the list of BH_ARGS lives to the end of the block it stands in. In C++ it is a temporary. It
 * can be an argument of the calls of this library that take bh_args, written without a leading ::,
 * and `auto args = BH_ARGS(...);` keeps it for other functions. The compiler refuses `bh_args args
 * = BH_ARGS(...);`, which would point to a list that no longer exists.
 *
 * All of this fills in bh_shape and bh_arg of core.h. Bindings do that themselves.
 */
#ifndef BULKHEAD_ARGS_H
#define BULKHEAD_ARGS_H

#include "core.h"

/* ---- shapes ---- */

#define BH_GRID(threads, block)          bh_shape_1d((threads), (block))
#define BH_SHAPE(gx, gy, gz, bx, by, bz) bh_shape_3d((gx), (gy), (gz), (bx), (by), (bz))

/* No threads, or more blocks than a grid can have, give a grid of zeros, which a launch refuses. */
static inline bh_shape bh_shape_1d(uint64_t threads, uint32_t block) {
    bh_shape shape = {{0, 1, 1}, {block, 1, 1}, {0, 0, 0}, 0};
    uint64_t blocks = block ? threads / block + (threads % block != 0) : 0;
    shape.grid.x = blocks > UINT32_MAX ? 0 : (uint32_t)blocks;
    if (shape.grid.x == 0) shape.grid.y = shape.grid.z = 0;
    return shape;
}

static inline bh_shape bh_shape_3d(uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                                   uint32_t bz) {
    bh_shape shape = {{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, 0};
    return shape;
}

/* ---- single arguments ---- */

#define BH_IN(buffer)                    bh_arg_buffer((buffer), BH_ACCESS_IN)
#define BH_OUT(buffer)                   bh_arg_buffer((buffer), BH_ACCESS_OUT)
#define BH_INOUT(buffer)                 bh_arg_buffer((buffer), BH_ACCESS_INOUT)
#define BH_IN_AT_LEAST(buffer, bytes)    bh_arg_buffer_at_least((buffer), BH_ACCESS_IN, (bytes))
#define BH_OUT_AT_LEAST(buffer, bytes)   bh_arg_buffer_at_least((buffer), BH_ACCESS_OUT, (bytes))
#define BH_INOUT_AT_LEAST(buffer, bytes) bh_arg_buffer_at_least((buffer), BH_ACCESS_INOUT, (bytes))
#define BH_VALUE(data, size)             bh_arg_data((data), (size))
#define BH_NULL                          bh_arg_null()

/* Field by field, in words: compilers then store an argument in its place without a copy. */
static inline bh_arg bh_arg_words(uint16_t kind, uint16_t access, uint32_t size, uint64_t first,
                                  uint64_t second) {
    bh_arg arg;
    arg.kind = kind;
    arg.access = access;
    arg.size = size;
    arg.u.buffer.handle.id = first;
    arg.u.buffer.at_least = second;
    return arg;
}

static inline bh_arg bh_arg_buffer(bh_buffer buffer, uint16_t access) {
    return bh_arg_words(BH_ARG_BUFFER, access, 0, buffer.id, 0);
}

static inline bh_arg bh_arg_buffer_at_least(bh_buffer buffer, uint16_t access, uint64_t bytes) {
    return bh_arg_words(BH_ARG_BUFFER, access, 0, buffer.id, bytes);
}

static inline bh_arg bh_arg_data(const void *data, size_t size) {
    bh_arg arg = {BH_ARG_DATA, 0, size > UINT32_MAX ? UINT32_MAX : (uint32_t)size, {{0}}};
    arg.u.data = data;
    return arg;
}

/* The bytes of a value of at most 16 bytes, copied. */
static inline bh_arg bh_arg_value(const void *value, size_t size) {
    bh_arg arg = {BH_ARG_VALUE, 0, (uint32_t)size, {{0}}};
    const uint8_t *bytes = (const uint8_t *)value;
    for (size_t i = 0; i < size && i < sizeof arg.u.value; i++) arg.u.value[i] = bytes[i];
    return arg;
}

static inline bh_arg bh_arg_null(void) {
    return bh_arg_words(BH_ARG_VALUE, 0, (uint32_t)sizeof(uint64_t), 0, 0);
}

/* ---- lists of arguments in C++ ---- */

#ifdef __cplusplus

#include <type_traits>

#define BH_ARG(x)    (bulkhead::detail::arg(x))
#define BH_ARGS(...) (bulkhead::detail::args(__VA_ARGS__))
#define BH_NO_ARGS   (bh_args{nullptr, 0})

struct bh_prepared;
struct bh_sequence;
struct bh_binary;
struct bh_host_pool;
struct bh_image;
struct bh_texture;
struct bh_surface;
struct bh_tensor_map;

namespace bulkhead {

/* True for what BH_ARGS accepts as it is: numbers and enums of up to 8 bytes, and bh_arg, which
 * BH_IN and the like return. Specialise it to pass a struct of up to 16 bytes, a float4, in the
 * same way. */
template <typename T>
struct is_argument
    : std::integral_constant<bool, (std::is_arithmetic<T>::value || std::is_enum<T>::value) &&
                                       sizeof(T) <= 8> {};
template <> struct is_argument<bh_arg> : std::true_type {};

namespace detail {

/* BH_INIT. */
template <typename T> inline T sized() {
    T options = T();
    options.size = static_cast<uint32_t>(sizeof options);
    return options;
}

template <typename T> struct is_handle : std::false_type {};
template <> struct is_handle<bh_device> : std::true_type {};
template <> struct is_handle<bh_lane> : std::true_type {};
template <> struct is_handle<bh_module> : std::true_type {};
template <> struct is_handle<bh_kernel> : std::true_type {};
template <> struct is_handle<bh_ticket> : std::true_type {};
template <> struct is_handle<bh_prepared> : std::true_type {};
template <> struct is_handle<bh_sequence> : std::true_type {};
template <> struct is_handle<bh_binary> : std::true_type {};
template <> struct is_handle<bh_host_pool> : std::true_type {};
template <> struct is_handle<bh_image> : std::true_type {};
template <> struct is_handle<bh_texture> : std::true_type {};
template <> struct is_handle<bh_surface> : std::true_type {};
template <> struct is_handle<bh_tensor_map> : std::true_type {};

template <typename T>
struct is_pointer
    : std::integral_constant<bool, std::is_pointer<T>::value || std::is_array<T>::value ||
                                       std::is_function<T>::value ||
                                       std::is_member_pointer<T>::value ||
                                       std::is_same<T, decltype(nullptr)>::value> {};

/* Also true for classes that own a buffer and convert to its handle. */
template <typename T> struct is_buffer : std::is_convertible<const T &, bh_buffer> {};

/* What is refused becomes a null pointer, so that the assertion below is the only error. */
template <typename T, bool accepted> struct packed {
    static bh_arg from(const volatile T &) {
        return bh_arg_null();
    }
};
template <typename T> struct packed<T, true> {
    static_assert(sizeof(T) <= 16, "pass more than 16 bytes with BH_VALUE(&s, sizeof s)");
    static_assert(std::is_trivially_copyable<T>::value, "an argument is copied byte by byte");
    static bh_arg from(T value) {
        return bh_arg_value(&value, sizeof value);
    }
};
template <> struct packed<bh_arg, true> {
    static bh_arg from(const bh_arg &arg) {
        return arg;
    }
};

template <typename T> inline bh_arg arg(const T &value) {
    typedef typename std::remove_cv<T>::type type;
    typedef typename std::conditional<is_buffer<type>::value || is_pointer<type>::value ||
                                          is_handle<type>::value,
                                      std::false_type, is_argument<type>>::type accepted;
    static_assert(!is_buffer<type>::value,
                  "say how the kernel uses the buffer: BH_IN(b), BH_OUT(b) or BH_INOUT(b)");
    static_assert(!is_pointer<type>::value,
                  "a kernel cannot reach host memory: pass a buffer with BH_IN, BH_OUT or "
                  "BH_INOUT, a device address as uint64_t, or BH_NULL");
    static_assert(!is_handle<type>::value,
                  "this handle cannot be an argument of a kernel; a texture, surface or tensor map "
                  "is one with BH_TEXTURE, BH_SURFACE or BH_TENSOR_IN");
    static_assert(is_buffer<type>::value || is_pointer<type>::value || is_handle<type>::value ||
                      accepted::value,
                  "not a number of up to 8 bytes: pass a struct with BH_VALUE(&s, sizeof s)");
    return packed<type, accepted::value>::from(value);
}

/* A temporary list does not convert to bh_args, which would point into it after its end. */
template <size_t N> struct arg_list {
    bh_arg list[N];
    operator bh_args() const &noexcept {
        return bh_args{list, N};
    }
    operator bh_args() const && = delete; /* write `auto args = BH_ARGS(...);` */
};

template <typename... T> inline arg_list<sizeof...(T)> args(const T &...values) {
    static_assert(sizeof...(T) > 0, "a kernel without parameters gets BH_NO_ARGS");
    return arg_list<sizeof...(T)>{{arg(values)...}};
}

/* The calls that take bh_args, for a list that lives until they return. They are found through
 * their argument only: ::bh_launch stays one function, and &bh_launch is unambiguous. */
template <size_t N>
inline bh_status bh_launch(bh_kernel kernel, bh_shape shape, const arg_list<N> &args,
                           const bh_launch_options *options, bh_ticket *out) {
    return ::bh_launch(kernel, shape, args, options, out);
}

} // namespace detail
} // namespace bulkhead

/* ---- lists of arguments in C ---- */

#else

#define BH_ARGS(...)                                                                               \
    ((bh_args){(const bh_arg[]){BH_EACH_(__VA_ARGS__)},                                            \
               sizeof((bh_arg[]){BH_EACH_(__VA_ARGS__)}) / sizeof(bh_arg)})
#define BH_NO_ARGS ((bh_args){NULL, 0})

/* clang-format off */
#define BH_ARG(x)                                                                                  \
    _Generic((x),                                                                                  \
        bh_arg: bh_arg_self,                                                                       \
        bool: bh_arg_bool,                                                                         \
        char: bh_arg_char,                                                                         \
        signed char: bh_arg_schar,                                                                 \
        unsigned char: bh_arg_uchar,                                                               \
        short: bh_arg_short,                                                                       \
        unsigned short: bh_arg_ushort,                                                             \
        int: bh_arg_int,                                                                           \
        unsigned int: bh_arg_uint,                                                                 \
        long: bh_arg_long,                                                                         \
        unsigned long: bh_arg_ulong,                                                               \
        long long: bh_arg_llong,                                                                   \
        unsigned long long: bh_arg_ullong,                                                         \
        float: bh_arg_float,                                                                       \
        double: bh_arg_double,                                                                     \
        default: bh_arg_must_be_a_number_or_BH_IN_OUT_INOUT_VALUE)(x)
/* clang-format on */

/* No value has this type. What _Generic does not list is passed to a function that wants it, and
 * the compiler's error message has the name of the function. */
struct bh_not_an_argument_ {
    char unused;
};
static inline bh_arg
bh_arg_must_be_a_number_or_BH_IN_OUT_INOUT_VALUE(struct bh_not_an_argument_ x) {
    (void)x;
    return bh_arg_null();
}

static inline bh_arg bh_arg_self(bh_arg arg) {
    return arg;
}
#define BH_DEFINE_ARG_(name, type)                                                                 \
    static inline bh_arg bh_arg_##name(type value) {                                               \
        union {                                                                                    \
            uint64_t word;                                                                         \
            type value;                                                                            \
        } bits = {0};                                                                              \
        bits.value = value;                                                                        \
        return bh_arg_words(BH_ARG_VALUE, 0, (uint32_t)sizeof value, bits.word, 0);                \
    }
BH_DEFINE_ARG_(bool, bool)
BH_DEFINE_ARG_(char, char)
BH_DEFINE_ARG_(schar, signed char)
BH_DEFINE_ARG_(uchar, unsigned char)
BH_DEFINE_ARG_(short, short)
BH_DEFINE_ARG_(ushort, unsigned short)
BH_DEFINE_ARG_(int, int)
BH_DEFINE_ARG_(uint, unsigned int)
BH_DEFINE_ARG_(long, long)
BH_DEFINE_ARG_(ulong, unsigned long)
BH_DEFINE_ARG_(llong, long long)
BH_DEFINE_ARG_(ullong, unsigned long long)
BH_DEFINE_ARG_(float, float)
BH_DEFINE_ARG_(double, double)
#undef BH_DEFINE_ARG_

#define BH_EACH_(...)                                                                              \
    BH_PICK_(__VA_ARGS__, BH_E24_, BH_E23_, BH_E22_, BH_E21_, BH_E20_, BH_E19_, BH_E18_, BH_E17_,  \
             BH_E16_, BH_E15_, BH_E14_, BH_E13_, BH_E12_, BH_E11_, BH_E10_, BH_E9_, BH_E8_,        \
             BH_E7_, BH_E6_, BH_E5_, BH_E4_, BH_E3_, BH_E2_, BH_E1_, BH_E0_)                       \
    (__VA_ARGS__)
#define BH_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,  \
                 a19, a20, a21, a22, a23, a24, name, ...)                                          \
    name
#define BH_E1_(a)       BH_ARG(a)
#define BH_E2_(a, ...)  BH_ARG(a), BH_E1_(__VA_ARGS__)
#define BH_E3_(a, ...)  BH_ARG(a), BH_E2_(__VA_ARGS__)
#define BH_E4_(a, ...)  BH_ARG(a), BH_E3_(__VA_ARGS__)
#define BH_E5_(a, ...)  BH_ARG(a), BH_E4_(__VA_ARGS__)
#define BH_E6_(a, ...)  BH_ARG(a), BH_E5_(__VA_ARGS__)
#define BH_E7_(a, ...)  BH_ARG(a), BH_E6_(__VA_ARGS__)
#define BH_E8_(a, ...)  BH_ARG(a), BH_E7_(__VA_ARGS__)
#define BH_E9_(a, ...)  BH_ARG(a), BH_E8_(__VA_ARGS__)
#define BH_E10_(a, ...) BH_ARG(a), BH_E9_(__VA_ARGS__)
#define BH_E11_(a, ...) BH_ARG(a), BH_E10_(__VA_ARGS__)
#define BH_E12_(a, ...) BH_ARG(a), BH_E11_(__VA_ARGS__)
#define BH_E13_(a, ...) BH_ARG(a), BH_E12_(__VA_ARGS__)
#define BH_E14_(a, ...) BH_ARG(a), BH_E13_(__VA_ARGS__)
#define BH_E15_(a, ...) BH_ARG(a), BH_E14_(__VA_ARGS__)
#define BH_E16_(a, ...) BH_ARG(a), BH_E15_(__VA_ARGS__)
#define BH_E17_(a, ...) BH_ARG(a), BH_E16_(__VA_ARGS__)
#define BH_E18_(a, ...) BH_ARG(a), BH_E17_(__VA_ARGS__)
#define BH_E19_(a, ...) BH_ARG(a), BH_E18_(__VA_ARGS__)
#define BH_E20_(a, ...) BH_ARG(a), BH_E19_(__VA_ARGS__)
#define BH_E21_(a, ...) BH_ARG(a), BH_E20_(__VA_ARGS__)
#define BH_E22_(a, ...) BH_ARG(a), BH_E21_(__VA_ARGS__)
#define BH_E23_(a, ...) BH_ARG(a), BH_E22_(__VA_ARGS__)
#define BH_E24_(a, ...) BH_ARG(a), BH_E23_(__VA_ARGS__)

#endif

#endif
