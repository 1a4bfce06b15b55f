/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead.hpp on a device: work, errors, and who releases what. usage: raii DEVICE SAXPY.ptx */
#include <array>
#include <atomic>
#include <bulkhead.hpp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <type_traits>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace bh = bulkhead;

static int failures;
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) std::printf("line %d: %s\n", __LINE__, #condition), failures++;          \
    } while (0)

template <typename Function> static bh_status thrown(Function function) {
    try {
        function();
    } catch (const bh::error &e) {
        EXPECT(e.what()[0] != 0 && e.fix()[0] != 0);
        return e.status();
    }
    return BH_OK;
}

template <typename Owner, typename Handle> constexpr bool converts_as_a_variable() {
    return std::is_convertible<Owner &, Handle>::value &&
           std::is_convertible<const Owner &, Handle>::value &&
           !std::is_convertible<Owner, Handle>::value &&
           !std::is_copy_constructible<Owner>::value && !std::is_copy_assignable<Owner>::value &&
           std::is_nothrow_move_constructible<Owner>::value &&
           std::is_nothrow_move_assignable<Owner>::value;
}
static_assert(converts_as_a_variable<bh::device, bh_device>());
static_assert(converts_as_a_variable<bh::lane, bh_lane>());
static_assert(converts_as_a_variable<bh::buffer, bh_buffer>());
static_assert(converts_as_a_variable<bh::image, bh_image>());
static_assert(converts_as_a_variable<bh::texture, bh_texture>());
static_assert(converts_as_a_variable<bh::tensor_map, bh_tensor_map>());
static_assert(converts_as_a_variable<bh::surface, bh_surface>());
static_assert(converts_as_a_variable<bh::kernel_module, bh_module>());
static_assert(converts_as_a_variable<bh::sequence, bh_sequence>());
static_assert(converts_as_a_variable<bh::binary, bh_binary>());
static_assert(converts_as_a_variable<bh::watch, bh_watch>());
static_assert(bh::type_of<uint8_t>() == BH_U8 && bh::type_of<long long>() == BH_I64 &&
              bh::type_of<float>() == BH_F32 && bh::type_of<double>() == BH_F64);

static const char *const crash = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                 ".visible .entry crash() { trap; }\n"
                                 ".visible .entry spin() { again: bra again; }\n";

/* Copies 32 words from one tensor to another, with one thread. */
static const char tile[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry copy(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])\n{\n"
    ".reg .pred %done; .reg .b32 %s, %bar; .reg .b64 %from, %to;\n"
    ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;\n"
    "mov.b64 %from, from; cvta.param.u64 %from, %from; mov.b64 %to, to;\n"
    "cvta.param.u64 %to, %to; mov.u32 %s, s; mov.u32 %bar, bar;\n"
    "mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;\n"
    "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
    " [%s], [%from, {0}], [%bar];\n"
    "WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra WAIT;\n"
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%to, {0}], [%s];\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;\n}\n";

/* Texel (x, y) of the surface = that of the texture, plus 1. */
static const char *const texels = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry next(.param .u64 from, .param .u64 to)
{
    .reg .b64 %from, %to;
    .reg .b32 %x, %y, %at, %v<4>;
    ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    mov.u32 %x, %tid.x;
    mov.u32 %y, %ctaid.x;
    tex.2d.v4.s32.s32 {%v0, %v1, %v2, %v3}, [%from, {%x, %y}];
    add.s32 %v0, %v0, 1;
    shl.b32 %at, %x, 2;
    sust.b.2d.b32.trap [%to, {%at, %y}], {%v0};
    ret;
}
.visible .entry first(.param .u64 from, .param .u64 out)
{
    .reg .b64 %from, %out;
    .reg .b32 %x, %y, %v<4>;
    ld.param.u64 %from, [from];
    ld.param.u64 %out, [out];
    mov.u32 %x, %tid.x;
    mov.u32 %y, %ctaid.x;
    tex.1d.v4.s32.s32 {%v0, %v1, %v2, %v3}, [%from, {%x}];
    mul.wide.u32 %from, %x, 4;
    add.u64 %out, %out, %from;
    st.global.u32 [%out], %v0;
    ret;
}
)";

static uint64_t buffers(const bh::device &gpu) {
    bh_memory_info info = BH_INIT(info);
    bh::check(bh_memory_get_info(gpu, &info));
    return info.buffers;
}

static void launches(const bh::device &gpu, bh::kernel saxpy) {
    EXPECT(saxpy.info().param_count == 4);
    EXPECT(saxpy.occupancy(BH_GRID(1, 64)).blocks_per_multiprocessor > 0);
    uint32_t n = 1000;
    std::vector<float> hx(n, 2.0f), hy(n, 1.0f);
    bh::buffer x = gpu.alloc<float>(n), y = gpu.alloc(BH_F32, n);
    x.write(hx);
    y.write(hy);
    bh::ticket ticket = saxpy(BH_GRID(n, 256), 2.0f, bh::in(x), bh::inout(y), n);
    ticket.wait();
    EXPECT(ticket.done() && ticket.status() == BH_OK);
    y.read(hy);
    EXPECT(hy[0] == 5.0f && hy[999] == 5.0f);

    bh::lane lane = gpu.open_lane();
    bh_launch_options options = BH_INIT(options);
    options.lane = lane;
    auto late = saxpy.launch(options, BH_GRID(n, 256), 1.0f, BH_IN(x), BH_INOUT(y), n);
    lane.sync();
    EXPECT(late.wait_for(std::chrono::seconds(10)));
    EXPECT(y.read<float>() == std::vector<float>(n, 7.0f));

    EXPECT(x.count() == n && x.info().type == BH_F32);
    y.fill(3.0f);
    std::array<float, 2> two = {8, 9};
    y.write(two, 8);
    float three[3];
    y.read(three, 4);
    EXPECT(three[0] == 3 && three[1] == 8 && three[2] == 9);
    EXPECT(y.view(2, 2).read<float>() == (std::vector<float>{8, 9}));
#if __cplusplus >= 202002L
    y.write(std::span<const float>(two));
    y.read(std::span<float>(three).first(2));
    EXPECT(three[0] == 8 && three[1] == 9);
#endif
    EXPECT(thrown([&] { y.read<float>(), y.read(three, 4 * n); }) == BH_E_INVALID);
}

static void ownership(const bh::device &gpu) {
    uint64_t before = buffers(gpu);
    {
        bh::buffer a = gpu.alloc<int>(10), b = std::move(a), c;
        EXPECT(!a && b && !c && buffers(gpu) == before + 1);
        c = std::move(b);
        bh::buffer &same = c;
        c = std::move(same);
        EXPECT(!b && c && buffers(gpu) == before + 1);
        c = gpu.alloc<int>(20); /* the first one is released */
        EXPECT(buffers(gpu) == before + 1 && c.count() == 20);
        bh_buffer given = c.release();
        EXPECT(!c && bh_buffer_release(given) == BH_OK);
        c = gpu.alloc<int>(30);
    }
    EXPECT(buffers(gpu) == before);
}

static bh_image_shape small_shape(uint32_t levels) {
    bh_image_shape shape = BH_INIT(shape);
    shape.type = BH_I32;
    shape.channels = 1;
    shape.width = 4;
    shape.height = 3;
    shape.levels = levels;
    shape.flags = BH_IMAGE_SURFACE;
    return shape;
}

static void images(const bh::device &gpu) {
    uint64_t before = buffers(gpu);
    {
        bh::image image = gpu.alloc_image(small_shape(2));
        EXPECT(image.info().width == 4 && image.info().height == 3 && image.info().type == BH_I32);
        EXPECT(image.level(1).width == 2 && image.level(1).height == 1);
        std::vector<int32_t> all(12), got(12);
        for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<int32_t>(i);
        image.write(all);
        image.read(got);
        EXPECT(got == all);
        bh_image_box box = BH_INIT(box);
        box.x = 2;
        box.y = 1;
        box.width = 1;
        int32_t column[2];
        image.read(column, box);
        EXPECT(column[0] == 6 && column[1] == 10);
        image.write(std::array<int32_t, 2>{-1, -2}, box);
        image.read(got);
        EXPECT(got[6] == -1 && got[10] == -2 && got[7] == 7);
        box = BH_INIT(box);
        box.level = 1;
        image.write(std::array<int32_t, 2>{20, 21}, box);
        image.read(column, box);
        EXPECT(column[0] == 20 && column[1] == 21);

        EXPECT(thrown([&] { image.write(std::vector<int32_t>(11)); }) == BH_E_INVALID);
        EXPECT(thrown([&] { image.read(std::vector<int32_t>(13)); }) == BH_E_INVALID);
        EXPECT(thrown([&] { image.read(column); }) == BH_E_INVALID);
        box.x = 9;
        EXPECT(thrown([&] { image.read(column, box); }) == BH_E_INVALID);
        EXPECT(thrown([&] { (void)image.level(2); }) == BH_E_INVALID);
        EXPECT(thrown([&] { (void)gpu.alloc_image({}); }) == BH_E_INVALID);
        EXPECT(thrown([&] { (void)bh::surface(image, 2); }) == BH_E_INVALID);
        bh_sampling wrong = BH_INIT(wrong);
        wrong.flags = BH_SAMPLE_LINEAR; /* of integers */
        EXPECT(thrown([&] { (void)bh::texture(image, &wrong); }) == BH_E_INVALID);
        bh::image other = std::move(image);
        EXPECT(!image && other && buffers(gpu) == before + 1);
    }
    EXPECT(buffers(gpu) == before);
}

static void textures(const bh::device &gpu) {
    bh::kernel_module mod = gpu.load(texels);
    bh::kernel next = mod.kernel("next"), first = mod.kernel("first");
    bh::image from = gpu.alloc_image(small_shape(1)), to = gpu.alloc_image(small_shape(1));
    std::vector<int32_t> all(12, 41), got(12);
    from.write(all);
    bh::texture read(from), moved = std::move(read);
    bh::surface write(to), other;
    EXPECT(!read && moved && write && !other);
    next(BH_SHAPE(3, 1, 1, 4, 1, 1), bh::in(moved), bh::inout(write)).wait();
    to.read(got);
    EXPECT(got == std::vector<int32_t>(12, 42));

    bh_buffer_options aligned = BH_INIT(aligned);
    aligned.align = 512;
    bh::buffer words = gpu.alloc<int32_t>(32, &aligned), out = gpu.alloc<int32_t>(4);
    words.fill(7);
    words.write(std::array<int32_t, 2>{3, 4});
    bh::texture line = bh::texture::linear(words, BH_I32, 1);
    first(BH_GRID(4, 4), bh::in(line), bh::out(out)).wait();
    EXPECT(out.read<int32_t>() == (std::vector<int32_t>{3, 4, 7, 7}));
    bh::texture rows = bh::texture::rows(words, BH_I32, 1, 4, 3, 32);
    next(BH_SHAPE(3, 1, 1, 4, 1, 1), bh::in(rows), bh::inout(write)).wait();
    to.read(got);
    EXPECT(got == (std::vector<int32_t>{4, 5, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}));
    EXPECT(thrown([&] { (void)bh::texture::rows(words, BH_I32, 1, 4, 3, 33); }) == BH_E_INVALID);
    line.close();
    EXPECT(!line && thrown([&] { line.close(); }) == BH_E_INVALID);
}

static void tensor_maps(const bh::device &gpu) {
    bh::kernel_module mod = gpu.load(tile);
    bh::kernel copy = mod.kernel("copy");
    bh::buffer from = gpu.alloc<int32_t>(32), to = gpu.alloc<int32_t>(32);
    bh_tensor_shape shape = BH_INIT(shape);
    shape.type = BH_I32;
    shape.rank = 1;
    shape.dimensions[0] = shape.box[0] = 32;
    from.fill(7);
    bh::tensor_map read(from, shape), write(to, shape), moved = std::move(read);
    EXPECT(!read && moved);
    copy(BH_GRID(1, 1), bh::in(moved), bh::out(write)).wait();
    EXPECT(to.read<int32_t>() == std::vector<int32_t>(32, 7));
    shape.box[0] = 3;
    EXPECT(thrown([&] { (void)bh::tensor_map(from, shape); }) == BH_E_INVALID);
    moved.close();
    EXPECT(!moved);
}

static void errors(const bh::device &gpu, bh::kernel saxpy) {
    bh::kernel_module mod = gpu.load(crash);
    try {
        mod.kernel("crash")(BH_GRID(1, 1)).wait();
        EXPECT(!"a trap is an error");
    } catch (const bh::error &e) {
        EXPECT(e.status() == BH_E_FAULT && std::strstr(e.what(), "crash") != nullptr);
        EXPECT(e.detail().certain == 1 && std::strcmp(e.detail().kernel, "crash") == 0);
    }
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = 300000000;
    bh::ticket spinning = mod.kernel("spin").launch(options, BH_GRID(1, 1));
    EXPECT(!spinning.wait_for(std::chrono::milliseconds(1)) && !spinning.done());
    EXPECT(thrown([&] { spinning.wait_for(std::chrono::seconds(20)); }) == BH_E_DEADLINE);
    EXPECT(gpu.health().losses == 2);

    EXPECT(thrown([&] { (void)mod.kernel("nothing"); }) == BH_E_NOT_FOUND);
    EXPECT(thrown([&] { (void)gpu.load("not PTX"); }) == BH_E_LOAD);
    EXPECT(thrown([&] { (void)gpu.load_file("/nothing.ptx"); }) != BH_OK);
    EXPECT(thrown([&] { (void)saxpy(BH_GRID(1, 1), 1); }) == BH_E_LAUNCH);
    EXPECT(thrown([&] { bh::ticket().wait(); }) == BH_E_INVALID);
    EXPECT(thrown([&] { (void)bh::device("no such device"); }) != BH_OK);
    EXPECT(thrown([&] { (void)bh::binary::compile("", nullptr).info(), (void)gpu.compile("?"); }) !=
           BH_OK);
}

static void sequences(const bh::device &gpu, bh::kernel saxpy) {
    uint32_t n = 100;
    bh::buffer x = gpu.alloc<float>(n), y = gpu.alloc<float>(n), other = gpu.alloc<float>(n);
    x.fill(1.0f);
    y.fill(0.0f);
    other.fill(10.0f);
    bh::sequence seq(gpu);
    uint32_t step = seq.launch(saxpy, BH_GRID(n, 64), 2.0f, bh::in(x), bh::inout(y), n);
    seq.launch(saxpy, BH_GRID(n, 64), 1.0f, bh::in(x), bh::inout(y), n);
    seq.finish();
    seq.submit().wait();
    EXPECT(y.read<float>() == std::vector<float>(n, 3.0f));
    seq.bind(x, other);
    seq.set(step, 0, 5.0f);
    bh_submit_options twice = BH_INIT(twice);
    twice.repeat = 2;
    seq.submit(&twice).wait();
    EXPECT(y.read<float>() == std::vector<float>(n, 123.0f));
}

static void binaries(const bh::device &gpu) {
    bh::binary binary = bh::binary::from(crash, std::strlen(crash));
    EXPECT(binary.bytes() == crash && binary.info().output == BH_OUTPUT_PTX);
    bh::kernel_module mod = gpu.load(binary);
    EXPECT(bh_kernel(mod.kernel("crash")).id != 0);
}

static void watches(const bh::device &gpu) {
    std::atomic<int> first{0}, second{0}, once{0};
    std::unique_ptr<bh::watch> alone;
    std::atomic<bool> ready{false};
    alone = std::make_unique<bh::watch>(gpu.open_watch(BH_EVENT_LOSS, [&](const bh_event &) {
        while (!ready) {
        }
        once++;
        alone.reset(); /* lets itself go */
        once++;
    }));
    ready = true;
    bh::watch a =
        gpu.open_watch(BH_EVENT_LOSS, [&](const bh_event &e) { first += e.loss != nullptr; });
    bh::watch b = std::move(a);
    EXPECT(!a && b);
    bh::kernel_module mod = gpu.load(crash);
    bh::kernel trap = mod.kernel("crash");
    EXPECT(thrown([&] { trap(BH_GRID(1, 1)).wait(); }) == BH_E_FAULT);
    gpu.sync();
    EXPECT(first == 1 && once == 2 && !alone);
    b = gpu.open_watch([&](const bh_event &e) { second += e.kind == BH_EVENT_LOSS; });
    EXPECT(thrown([&] { trap(BH_GRID(1, 1)).wait(); }) == BH_E_FAULT);
    gpu.sync();
    EXPECT(first == 1 && second == 1 && once == 2);
    b.reset();
    EXPECT(!b);
    EXPECT(thrown([&] { (void)gpu.open_watch(BH_EVENT_LOSS, nullptr); }) == BH_E_INVALID);
    EXPECT(thrown([&] { (void)gpu.open_watch(1u << 31, [](const bh_event &) {}); }) ==
           BH_E_INVALID);
}

/* A callback must not close its device: the owner keeps the handle, whatever is tried. */
static void refusals(const char *name) {
    bh::device gpu(name), other(name);
    struct {
        bh::device *gpu, *other;
        bh_device before;
        std::atomic<int> done;
    } in = {&gpu, &other, gpu, {0}};
    bh::kernel_module mod = gpu.load(crash);
    bh::ticket ticket = mod.kernel("crash")(BH_GRID(1, 1));
    bh::check(bh_on_done(
        ticket,
        [](void *context, bh_ticket, bh_status) {
            auto *to = static_cast<decltype(in) *>(context);
            bh::device &owner = *to->gpu;
            EXPECT(thrown([&] { owner.close(); }) == BH_E_INVALID);
            EXPECT(owner && bh_device(owner).id == to->before.id);
            EXPECT(!owner.reset() && bh_device(owner).id == to->before.id);
            uint64_t second = bh_device(*to->other).id;
            owner = std::move(*to->other); /* they change places */
            EXPECT(bh_device(owner).id == second && bh_device(*to->other).id == to->before.id);
            *to->other = std::move(owner);
            EXPECT(bh_device(owner).id == to->before.id && bh_device(*to->other).id == second);
            to->done = 1;
        },
        &in));
    EXPECT(thrown([&] { ticket.wait(); }) == BH_E_FAULT);
    while (!in.done) std::this_thread::yield();
    EXPECT(bh_device(gpu).id == in.before.id);
    gpu.sync(); /* it still works */
    gpu.close();
    EXPECT(!gpu && thrown([&] { gpu.close(); }) == BH_E_INVALID);
    bh::buffer late = other.alloc<char>(7);
    EXPECT(thrown([&] { (void)late.read<int>(); }) == BH_E_INVALID);
    EXPECT(late.read<char>().size() == 7);
    other.close();
    bh::device third(name);
    late = third.alloc<char>(5); /* what went with its device is not kept */
    EXPECT(late.count() == 5);
    EXPECT(thrown([&] { third.close(), late.close(); }) == BH_E_INVALID && !late);
}

int main(int, char **argv) try {
    bh::buffer survivor;
    {
        bh::device gpu(argv[1]);
        EXPECT(gpu && gpu.info().memory_total > 0);
        bh::kernel_module mod = gpu.load_file(argv[2]);
        bh::kernel saxpy = mod.kernel("saxpy");
        launches(gpu, saxpy);
        ownership(gpu);
        images(gpu);
        textures(gpu);
        tensor_maps(gpu);
        sequences(gpu, saxpy);
        binaries(gpu);
        errors(gpu, saxpy);
        refusals(argv[1]);
        watches(gpu);
        survivor = gpu.alloc<float>(1);
        gpu.sync();
        gpu.close();
        EXPECT(!gpu);
    }
    EXPECT(thrown([&] { (void)survivor.info(); }) == BH_E_INVALID);
    return failures != 0;
} catch (const bh::error &e) {
    return std::fprintf(stderr, "%s\nFix: %s\n", e.what(), e.fix()), 1;
}
