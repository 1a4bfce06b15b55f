/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead.hpp: Bulkhead for C++17. Owners that release what they own, and exceptions.
 *
 *     namespace bh = bulkhead;
 *     int main() try {
 *         uint32_t n = 1000;
 *         std::vector<float> hx(n, 2.0f), hy(n, 1.0f);
 *         bh::device gpu;
 *         auto mod = gpu.load_file("saxpy.ptx");
 *         bh::kernel saxpy = mod.kernel("saxpy");
 *         bh::buffer x = gpu.alloc<float>(n), y = gpu.alloc<float>(n);
 *         x.write(hx);
 *         y.write(hy);
 *         saxpy(BH_GRID(n, 256), 2.0f, bh::in(x), bh::inout(y), n).wait();
 *         y.read(hy);
 *         std::printf("y[999] = %g\n", hy[999]);
 *     } catch (const bh::error &e) {
 *         return std::fprintf(stderr, "%s\nFix: %s\n", e.what(), e.fix()), 1;
 *     }
 *
 * - A call that fails throws bulkhead::error. So does ticket::wait if the work failed; the device
 *   can be used afterwards.
 * - device, lane, buffer, image, texture, surface, tensor_map, kernel_module, sequence, binary and
 *   watch own a handle. They can be moved, not copied, and release it once. Closing a device closes
 *   everything that belongs to it: owners that live longer then release nothing.
 * - A release can be refused: bh_device_close in a callback, bh_module_release while its load runs.
 *   Then the owner keeps its handle, and close() throws. Only a destructor has to give it up.
 * - An owner that is a variable converts to the C handle, so that every call of bulkhead.h can be
 *   used with it: `bulkhead::check(bh_buffer_accept(x));`. A temporary owner does not: its handle
 *   would be released at once.
 * - kernel and ticket are plain values. A kernel belongs to its module.
 *
 * Everything here is inline and calls the exported functions of libbulkhead.
 */
#ifndef BULKHEAD_HPP
#define BULKHEAD_HPP

#include "bulkhead.h"

#if __cplusplus < 201703L
#error "bulkhead.hpp needs C++17 or later"
#endif

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace bulkhead {

/* ---- errors ---- */

class error : public std::exception {
  public:
    explicit error(const bh_error &detail) noexcept : detail_(detail) {
    }
    const char *what() const noexcept override {
        return detail_.message;
    }
    const char *fix() const noexcept {
        return detail_.fix;
    }
    bh_status status() const noexcept {
        return detail_.status;
    }
    const bh_error &detail() const noexcept {
        return detail_;
    }

  private:
    bh_error detail_;
};

/* Throws the error of this thread's last failed call unless `status`, which that call returned, is
 * BH_OK. */
inline void check(bh_status status) {
    if (status == BH_OK) return;
    bh_error detail = {};
    bh_last_error(&detail);
    detail.status = status;
    throw error(detail);
}

/* ---- what owners have in common ---- */

namespace detail {

/* True if a release that returned `status` was refused and the handle is still valid. Otherwise it
 * is not: released, or closed with its device. */
template <typename Handle> bool is_kept(Handle, bh_status status) noexcept {
    return status == BH_E_BUSY;
}
inline bool is_kept(bh_device device, bh_status status) noexcept {
    bh_health health = BH_INIT(health);
    return status != BH_OK && bh_device_get_health(device, &health) == BH_OK;
}

template <typename Handle, bh_status (*Release)(Handle)> class owned {
  public:
    owned() noexcept = default;
    explicit owned(Handle handle) noexcept : handle_(handle) {
    }
    owned(owned &&other) noexcept : handle_(other.release()) {
    }
    /* If the release of the old handle is refused, `other` gets it. */
    owned &operator=(owned &&other) noexcept {
        if (this == &other) return *this;
        (void)reset();
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~owned() {
        (void)reset();
    }
    /* False after a move, and for an owner made without a handle. */
    explicit operator bool() const noexcept {
        return handle_.id != 0;
    }
    operator Handle() const &noexcept {
        return handle_;
    }
    operator Handle() const && = delete; /* the temporary would release it: use a variable */
    Handle get() const &noexcept {
        return handle_;
    }
    Handle get() const && = delete;
    /* Gives the handle up without releasing it. */
    Handle release() noexcept {
        return std::exchange(handle_, Handle());
    }
    /* Releases the handle, if any, and owns another. False: that was refused, the owner keeps its
     * handle and does not own the other. */
    bool reset(Handle handle = Handle()) noexcept {
        if (handle_.id != 0 && is_kept(handle_, Release(handle_))) return false;
        handle_ = handle;
        return true;
    }
    /* Releases the handle and reports an error, which the destructor cannot. */
    void close() {
        bh_status status = Release(handle_);
        bh_error why = {};
        if (status != BH_OK) bh_last_error(&why);
        if (!is_kept(handle_, status)) handle_ = Handle();
        why.status = status;
        if (status != BH_OK) throw error(why);
    }

  private:
    Handle handle_ = Handle();
};

} // namespace detail

/* The element type of a buffer for a C++ type. */
template <typename T> constexpr bh_type type_of() {
    static_assert((std::is_integral<T>::value && sizeof(T) <= 8) || std::is_same<T, float>::value ||
                      std::is_same<T, double>::value,
                  "buffers have integers, float or double; for other types alloc takes a bh_type");
    if (std::is_same<T, float>::value) return BH_F32;
    if (std::is_same<T, double>::value) return BH_F64;
    bh_type type = sizeof(T) == 1   ? BH_I8
                   : sizeof(T) == 2 ? BH_I16
                   : sizeof(T) == 4 ? BH_I32
                                    : BH_I64;
    return std::is_signed<T>::value ? type : type + 1;
}

/* ---- tickets ---- */

class ticket {
  public:
    ticket() noexcept = default;
    ticket(bh_ticket value) noexcept : value_(value) {
    }
    operator bh_ticket() const noexcept {
        return value_;
    }
    /* BH_OK, the error of the work, or BH_E_BUSY if it has not completed. Never throws. */
    bh_status status() const noexcept {
        return bh_wait(value_, 0);
    }
    bool done() const noexcept {
        return status() != BH_E_BUSY;
    }
    /* Returns when the work has completed; throws if it failed. */
    void wait() const {
        resolve(bh_wait(value_, BH_FOREVER));
    }
    /* The same for a limited time; false if the work has not completed by then. */
    bool wait_for(std::chrono::nanoseconds time) const {
        uint64_t limit = time.count() > 0 ? static_cast<uint64_t>(time.count()) : 0;
        bh_status result = bh_wait(value_, limit);
        if (result != BH_OK) result = status(); /* it may have completed just after the timeout */
        if (result == BH_E_BUSY) return false;
        resolve(result);
        return true;
    }
    void cancel() const {
        check(bh_cancel(value_));
    }
    /* Its times, if it was submitted with BH_SUBMIT_TIMED. */
    bh_ticket_info info() const {
        bh_ticket_info info = BH_INIT(info);
        check(bh_ticket_get_info(value_, &info));
        return info;
    }

  private:
    void resolve(bh_status result) const {
        if (result == BH_OK) return;
        bh_error detail = {};
        (void)bh_ticket_error(value_, &detail);
        if (detail.status != result) check(result); /* not a ticket */
        throw error(detail);
    }
    bh_ticket value_ = {};
};

/* ---- arguments ---- */

inline bh_arg in(bh_buffer buffer) noexcept {
    return BH_IN(buffer);
}
inline bh_arg out(bh_buffer buffer) noexcept {
    return BH_OUT(buffer);
}
inline bh_arg inout(bh_buffer buffer) noexcept {
    return BH_INOUT(buffer);
}
inline bh_arg in(bh_texture texture) noexcept {
    return BH_TEXTURE(texture);
}
inline bh_arg inout(bh_surface surface) noexcept {
    return BH_SURFACE(surface);
}
inline bh_arg in(bh_tensor_map map) noexcept {
    return BH_TENSOR_IN(map);
}
inline bh_arg out(bh_tensor_map map) noexcept {
    return BH_TENSOR_OUT(map);
}
inline bh_arg inout(bh_tensor_map map) noexcept {
    return BH_TENSOR_INOUT(map);
}

/* ---- kernels and modules ---- */

class kernel {
  public:
    kernel() noexcept = default;
    kernel(bh_kernel handle) noexcept : handle_(handle) {
    }
    operator bh_kernel() const noexcept {
        return handle_;
    }
    /* Launches on the device's own lane: saxpy(BH_GRID(n, 256), 2.0f, in(x), inout(y), n). The
     * values are what BH_ARGS accepts. */
    template <typename... T> ticket operator()(bh_shape shape, const T &...values) const {
        return start(nullptr, shape, values...);
    }
    template <typename... T>
    ticket launch(const bh_launch_options &options, bh_shape shape, const T &...values) const {
        return start(&options, shape, values...);
    }
    bh_kernel_info info() const {
        bh_kernel_info found = BH_INIT(found);
        check(bh_kernel_get_info(handle_, &found));
        return found;
    }
    /* Of blocks like the shape's; its grid is ignored. */
    bh_occupancy occupancy(bh_shape shape) const {
        bh_occupancy found = BH_INIT(found);
        check(bh_kernel_get_occupancy(handle_, shape, &found));
        return found;
    }

  private:
    template <typename... T>
    ticket start(const bh_launch_options *options, bh_shape shape, const T &...values) const {
        bh_ticket made = {};
        if constexpr (sizeof...(T) == 0) {
            check(bh_launch(handle_, shape, BH_NO_ARGS, options, &made));
        } else {
            check(bh_launch(handle_, shape, BH_ARGS(values...), options, &made));
        }
        return made;
    }
    bh_kernel handle_ = {};
};

class kernel_module : public detail::owned<bh_module, bh_module_release> {
  public:
    using owned::owned;
    /* By its name, or by a name expression that the module was compiled with. */
    bulkhead::kernel kernel(const char *name) const & {
        bh_kernel found;
        check(bh_kernel_get(get(), name, &found));
        return found;
    }
    bulkhead::kernel kernel(const char *name) const && = delete; /* it belongs to the module */
};

/* The result of a compile or link; it belongs to no device. */
class binary : public detail::owned<bh_binary, bh_binary_release> {
  public:
    using owned::owned;
    static binary compile(const char *source, const bh_compile_options *options = nullptr) {
        bh_binary made;
        check(bh_compile(source, options, &made));
        return binary(made);
    }
    static binary from(const void *bytes, size_t count) {
        bh_binary made;
        check(bh_binary_from(bytes, count, &made));
        return binary(made);
    }
    bh_binary_info info() const & {
        bh_binary_info info = BH_INIT(info);
        check(bh_binary_get_info(get(), &info));
        return info;
    }
    /* Valid as long as the binary. */
    std::string_view bytes() const & {
        bh_binary_info all = info();
        return {static_cast<const char *>(all.bytes), static_cast<size_t>(all.count)};
    }
    std::string_view bytes() const && = delete;
    /* One output of a binary that holds several (BH_OUTPUT_...). Valid as long. */
    std::string_view image(uint32_t output) const & {
        const void *from;
        size_t count;
        check(bh_binary_get_image(get(), output, &from, &count));
        return {static_cast<const char *>(from), count};
    }
    std::string_view image(uint32_t output) const && = delete;
};

/* ---- buffers ---- */

class buffer : public detail::owned<bh_buffer, bh_buffer_release> {
  public:
    using owned::owned;
    bh_buffer_info info() const & {
        bh_buffer_info info = BH_INIT(info);
        check(bh_buffer_get_info(get(), &info));
        return info;
    }
    uint64_t count() const & {
        return info().count;
    }
    /* Writes a std::vector, std::array, std::span, array or the like from byte `offset` on. Returns
     * when the data is in place. */
    template <typename Range> void write(const Range &source, uint64_t offset = 0) const & {
        auto data = std::data(source);
        static_assert(std::is_trivially_copyable<std::remove_pointer_t<decltype(data)>>::value,
                      "elements are copied byte by byte");
        check(bh_buffer_write(get(), offset, data, std::size(source) * sizeof *data));
    }
    /* Fills the whole of such a range from byte `offset` on. */
    template <typename Range> void read(Range &&target, uint64_t offset = 0) const & {
        auto data = std::data(target);
        static_assert(std::is_trivially_copyable<std::remove_pointer_t<decltype(data)>>::value,
                      "elements are copied byte by byte");
        check(bh_buffer_read(get(), offset, data, std::size(target) * sizeof *data));
    }
    /* All of the buffer, which has a whole number of T. */
    template <typename T> std::vector<T> read() const & {
        uint64_t bytes = info().bytes;
        if (bytes % sizeof(T) != 0) refuse_rest(bytes, sizeof(T));
        std::vector<T> all(static_cast<size_t>(bytes / sizeof(T)));
        read(all);
        return all;
    }
    /* Sets all of the buffer to one value. */
    template <typename T> void fill(const T &value) const & {
        static_assert(std::is_trivially_copyable<T>::value, "the value is copied byte by byte");
        check(bh_buffer_fill(get(), 0, BH_WHOLE, &value, sizeof value));
    }
    /* `count` elements from element `first` on; shares the memory and keeps it alive. */
    buffer view(uint64_t first, uint64_t count) const & {
        bh_buffer made;
        check(bh_buffer_view(get(), 0, first, count, &made));
        return buffer(made);
    }

  private:
    [[noreturn]] static void refuse_rest(uint64_t bytes, size_t element) {
        bh_error why = {};
        why.status = BH_E_INVALID;
        std::snprintf(why.message, sizeof why.message,
                      "a buffer of %llu bytes is not a whole number of elements of %zu bytes",
                      static_cast<unsigned long long>(bytes), element);
        std::snprintf(why.fix, sizeof why.fix,
                      "read another type, or a part of it into a range of your own");
        throw error(why);
    }
};

/* ---- images, textures and surfaces ---- */

class image : public detail::owned<bh_image, bh_image_release> {
  public:
    using owned::owned;
    bh_image_info info() const & {
        bh_image_info info = BH_INIT(info);
        check(bh_image_get_info(get(), &info));
        return info;
    }
    bh_image_level level(uint32_t number) const & {
        bh_image_level level = BH_INIT(level);
        check(bh_image_get_level(get(), number, &level));
        return level;
    }
    /* Writes level 0, or a part of a level, from a range that has all of its texels and nothing
     * else. Returns when the data is in place. */
    template <typename Range> void write(const Range &source) const & {
        write(source, whole());
    }
    template <typename Range> void write(const Range &source, const bh_image_box &box) const & {
        check(bh_image_write(get(), &box, fitting(source, box), 0, 0));
    }
    /* Fills such a range. */
    template <typename Range> void read(Range &&target) const & {
        read(std::forward<Range>(target), whole());
    }
    template <typename Range> void read(Range &&target, const bh_image_box &box) const & {
        check(bh_image_read(get(), &box, fitting(target, box), 0, 0));
    }

  private:
    static bh_image_box whole() {
        bh_image_box box = BH_INIT(box);
        return box;
    }
    static uint64_t length(uint32_t asked, uint32_t first, uint32_t end) {
        return asked != 0 ? asked : first < end ? end - first : 0;
    }
    /* The C functions do not know how large the host's memory is. */
    template <typename Range> auto fitting(Range &range, const bh_image_box &box) const & {
        auto data = std::data(range);
        static_assert(std::is_trivially_copyable<std::remove_pointer_t<decltype(data)>>::value,
                      "texels are copied byte by byte");
        bh_image_level of = level(box.level);
        uint64_t bytes = length(box.width, box.x, of.width) * (of.pitch / of.width) *
                         length(box.height, box.y, of.height) * length(box.depth, box.z, of.planes);
        if (bytes != std::size(range) * sizeof *data)
            refuse_size(bytes, std::size(range), sizeof *data);
        return data;
    }
    [[noreturn]] static void refuse_size(uint64_t bytes, size_t count, size_t element) {
        bh_error why = {};
        why.status = BH_E_INVALID;
        std::snprintf(why.message, sizeof why.message,
                      "%llu bytes of an image are not %zu elements of %zu bytes",
                      static_cast<unsigned long long>(bytes), count, element);
        std::snprintf(why.fix, sizeof why.fix,
                      "pass a range with all texels of the level or the box, and no others");
        throw error(why);
    }
};

/* A kernel gets it with in(texture). */
class texture : public detail::owned<bh_texture, bh_texture_release> {
  public:
    using owned::owned;
    texture() noexcept = default;
    explicit texture(const image &over, const bh_sampling *sampling = nullptr) {
        bh_texture made;
        check(bh_texture_create(over, sampling, &made));
        reset(made);
    }
    /* A buffer as an image of one dimension, see bh_texture_create_linear. */
    static texture linear(bh_buffer buffer, bh_type type, uint32_t channels,
                          const bh_sampling *sampling = nullptr) {
        bh_texture made;
        check(bh_texture_create_linear(buffer, type, channels, sampling, &made));
        return texture(made);
    }
    /* Rows in a buffer as an image of two dimensions, see bh_texture_create_rows. */
    static texture rows(bh_buffer buffer, bh_type type, uint32_t channels, uint32_t width,
                        uint32_t height, uint64_t pitch, const bh_sampling *sampling = nullptr) {
        bh_texture made;
        check(
            bh_texture_create_rows(buffer, type, channels, width, height, pitch, sampling, &made));
        return texture(made);
    }
};

/* A kernel gets it with inout(surface). */
class surface : public detail::owned<bh_surface, bh_surface_release> {
  public:
    using owned::owned;
    surface() noexcept = default;
    explicit surface(const image &over, uint32_t level = 0) {
        bh_surface made;
        check(bh_surface_create(over, level, &made));
        reset(made);
    }
};

/* A kernel gets it with in(map), out(map) or inout(map). */
class tensor_map : public detail::owned<bh_tensor_map, bh_tensor_map_release> {
  public:
    using owned::owned;
    tensor_map() noexcept = default;
    tensor_map(bh_buffer over, const bh_tensor_shape &shape) {
        bh_tensor_map made;
        check(bh_tensor_map_create(over, &shape, &made));
        reset(made);
    }
};

/* ---- lanes ---- */

class lane : public detail::owned<bh_lane, bh_lane_release> {
  public:
    using owned::owned;
    /* Waits until the work submitted so far has completed. */
    void sync() const & {
        check(bh_lane_sync(get(), BH_FOREVER));
    }
};

/* ---- watchers ---- */

/* Made by device::open_watch. When it goes, the function is not running and never runs again,
 * unless the function itself lets it go: then when it returns. */
class watch : public detail::owned<bh_watch, bh_watch_release> {
  public:
    using function = std::function<void(const bh_event &)>;
    watch() noexcept = default;
    watch(bh_device device, const bh_watch_options *options, function callback)
        : callback_(std::make_unique<shared>(std::make_shared<function>(std::move(callback)))) {
        bh_watch made; /* an empty function is refused as NULL is */
        check(bh_watch_open(device, options, **callback_ ? call : nullptr, callback_.get(), &made));
        owned::reset(made);
    }
    watch(watch &&) noexcept = default;
    watch &operator=(watch &&other) noexcept {
        if (this == &other) return *this;
        if (owned::reset()) callback_.reset(); /* the function goes after its handle */
        owned::operator=(std::move(other));
        std::swap(callback_, other.callback_);
        return *this;
    }
    ~watch() {
        (void)reset();
    }
    bool reset() noexcept {
        if (!owned::reset()) return false;
        callback_.reset();
        return true;
    }
    void close() {
        owned::close();
        callback_.reset();
    }
    bh_watch release() = delete; /* the function would go with this owner */

  private:
    using shared = std::shared_ptr<function>;
    /* Exceptions cannot leave a callback: one ends the program. */
    static void call(void *context, const bh_event *event) noexcept {
        shared keep = *static_cast<shared *>(context); /* the function may let its owner go */
        (*keep)(*event);
    }
    std::unique_ptr<shared> callback_;
};

/* ---- devices ---- */

class device : public detail::owned<bh_device, bh_device_close> {
  public:
    using owned::owned;
    /* "auto", "cpu", "cuda", "cuda:1", or a list: "cuda,cpu" is a GPU if one can be used. */
    explicit device(const char *name = "auto") {
        bh_device_options options = BH_INIT(options);
        options.device = name;
        open(options);
    }
    explicit device(const bh_device_options &options) {
        open(options);
    }
    bh_device_info info() const & {
        bh_device_info info = BH_INIT(info);
        check(bh_device_get_info(get(), &info));
        return info;
    }
    bh_device_limits limits() const & {
        bh_device_limits limits = BH_INIT(limits);
        check(bh_device_get_limits(get(), &limits));
        return limits;
    }
    bh_health health() const & {
        bh_health health = BH_INIT(health);
        check(bh_device_get_health(get(), &health));
        return health;
    }
    /* Waits until everything submitted so far has a result. */
    void sync() const & {
        check(bh_device_sync(get(), BH_FOREVER));
    }

    kernel_module load(std::string_view image) const & {
        bh_module made;
        check(bh_module_load(get(), image.data(), image.size(), &made));
        return kernel_module(made);
    }
    kernel_module load(const binary &image) const & {
        bh_module made;
        check(bh_module_load_binary(get(), image, &made));
        return kernel_module(made);
    }
    kernel_module load_file(const char *path) const & {
        bh_module made;
        check(bh_module_load_file(get(), path, &made));
        return kernel_module(made);
    }
    kernel_module compile(const char *source, const bh_compile_options &options) const & {
        bh_module made;
        check(bh_module_compile(get(), source, &options, &made));
        return kernel_module(made);
    }
    /* With name expressions: gpu.compile(source, {"scale<float, 4>"}). */
    kernel_module compile(const char *source,
                          std::initializer_list<const char *> expressions) const & {
        bh_compile_options options = BH_INIT(options);
        options.expressions = expressions.begin();
        options.expression_count = expressions.size();
        return compile(source, options);
    }
    kernel_module compile(const char *source) const & {
        return compile(source, {});
    }

    buffer alloc(bh_type type, uint64_t count, const bh_buffer_options *options = nullptr) const & {
        bh_buffer made;
        check(bh_buffer_alloc(get(), type, count, options, &made));
        return buffer(made);
    }
    template <typename T>
    buffer alloc(uint64_t count, const bh_buffer_options *options = nullptr) const & {
        return alloc(type_of<T>(), count, options);
    }
    image alloc_image(const bh_image_shape &shape) const & {
        bh_image made;
        check(bh_image_alloc(get(), &shape, &made));
        return image(made);
    }
    /* Calls `callback` for what happens from now on, on a thread of the library. */
    watch open_watch(watch::function callback, const bh_watch_options *options = nullptr) const & {
        return watch(get(), options, std::move(callback));
    }
    /* For these kinds: BH_EVENT_LOSS | BH_EVENT_HEALTH. */
    watch open_watch(uint32_t kinds, watch::function callback) const & {
        bh_watch_options options = BH_INIT(options);
        options.kinds = kinds;
        return open_watch(std::move(callback), &options);
    }
    lane open_lane(int32_t priority = 0, uint32_t flags = 0) const & {
        bh_lane_options options = BH_INIT(options);
        options.priority = priority;
        options.flags = flags;
        bh_lane made;
        check(bh_lane_open(get(), &options, &made));
        return lane(made);
    }

  private:
    void open(const bh_device_options &options) {
        bh_device made;
        check(bh_device_open(&options, &made));
        reset(made);
    }
};

/* ---- sequences ---- */

/* Recorded with launch, copy, fill, read, write and add, then finished, then submitted any number
 * of times. The recording calls return the number of the step. */
class sequence : public detail::owned<bh_sequence, bh_sequence_release> {
  public:
    using owned::owned;
    sequence() noexcept = default;
    explicit sequence(const device &on, const bh_sequence_options *options = nullptr) {
        bh_sequence made;
        check(bh_sequence_begin(on, options, &made));
        reset(made);
    }
    template <typename... T>
    uint32_t launch(bh_kernel kernel, bh_shape shape, const T &...values) & {
        uint32_t step = 0;
        if constexpr (sizeof...(T) == 0) {
            check(bh_sequence_launch(get(), kernel, shape, BH_NO_ARGS, nullptr, &step));
        } else {
            check(bh_sequence_launch(get(), kernel, shape, BH_ARGS(values...), nullptr, &step));
        }
        return step;
    }
    uint32_t add(const bh_request &request) & {
        uint32_t step = 0;
        check(bh_sequence_add(get(), &request, &step));
        return step;
    }
    uint32_t copy(bh_buffer target, uint64_t target_offset, bh_buffer source,
                  uint64_t source_offset, uint64_t bytes) & {
        return add(bh_transfer_copy(target, target_offset, source, source_offset, bytes).request);
    }
    uint32_t fill(bh_buffer target, uint64_t offset, uint64_t bytes, const void *pattern,
                  uint32_t pattern_bytes) & {
        return add(bh_transfer_fill(target, offset, bytes, pattern, pattern_bytes).request);
    }
    /* Host memory of these two is from bh_host_alloc or bh_host_pool_take. */
    uint32_t write(bh_buffer target, uint64_t offset, const void *source, uint64_t bytes) & {
        return add(bh_transfer_write(target, offset, source, bytes).request);
    }
    uint32_t read(bh_buffer source, uint64_t offset, void *target, uint64_t bytes) & {
        return add(bh_transfer_read(source, offset, target, bytes).request);
    }
    void finish() & {
        check(bh_sequence_finish(get()));
    }
    /* Uses `buffer` from now on wherever `recorded` was recorded. */
    void bind(bh_buffer recorded, bh_buffer buffer) & {
        check(bh_sequence_bind(get(), recorded, buffer));
    }
    /* Changes an argument of a launch that is not a buffer. */
    template <typename T> void set(uint32_t step, uint32_t argument, const T &value) & {
        check(bh_sequence_set(get(), step, argument, BH_ARG(value)));
    }
    ticket submit(const bh_submit_options *options = nullptr) const & {
        bh_ticket made = {};
        check(bh_sequence_submit(get(), options, &made));
        return made;
    }
};

} // namespace bulkhead

#endif
