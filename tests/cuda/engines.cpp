// Which engine does what: liars and failures are dropped, nothing is timed in a recording or
// without need, accumulation survives the timing, choices live on in a file.
#include <fstream>
#include <sstream>

#include "cuda/gemm_rig.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d::test {
namespace {

using cuda::AttentionEngine;
using cuda::Engines;
using cuda::GemmEngine;
using cuda::OperandRounding;
using ops_test::GemmShape;
using ops_test::OpCase;

enum class Deed { right, wrong, slightly_wrong, fails, refuses };

/// Our first native engine under another name, with another result, counting its calls.
class Double final : public GemmEngine {
 public:
  Double(Gpu& gpu, std::string name, Deed deed, int& calls)
      : engines_(cuda::make_native_gemm_engines(*gpu.device, {})),
        name_(std::move(name)),
        deed_(deed),
        calls_(calls) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] bool usable(const GemmArgs& args) const override {
    return deed_ != Deed::refuses && engine_for(args) != nullptr;
  }
  void run(Queue& queue, const GemmArgs& args) override {
    ++calls_;
    if (deed_ == Deed::fails) throw_error(ExitCode::internal, "this engine is out of order");
    GemmArgs call = args;
    if (deed_ == Deed::slightly_wrong && call.a.cols > 1) {  // forgets the end of K
      call.a = call.a.col_range(0, call.a.cols - 1);
      call.b = call.transpose_b ? call.b.col_range(0, call.b.cols - 1)
                                : call.b.row_range(0, call.b.rows - 1);
    }
    engine_for(call)->run(queue, call);
    if (deed_ == Deed::wrong)
      cuda::check(
          cudaMemsetAsync(args.c.data, 0x41, static_cast<std::size_t>(size_of(args.c.dtype)),
                          cuda::stream_of(queue)),
          "a wrong number");
  }

 private:
  [[nodiscard]] GemmEngine* engine_for(const GemmArgs& args) const {
    for (const auto& engine : engines_)
      if (engine->usable(args)) return engine.get();
    return nullptr;
  }
  cuda::GemmEngines engines_;
  std::string name_;
  Deed deed_;
  int& calls_;
};

struct Scene {
  Gpu gpu;
  int native_calls = 0, vendor_calls = 0, second_calls = 0;
  EngineOptions options;
  Engines::Lists lists;

  /// A native engine that is right, a library engine that does `deed`.
  explicit Scene(Deed deed) {
    lists.native_gemm.push_back(
        std::make_unique<Double>(gpu, "native one", Deed::right, native_calls));
    if (deed != Deed::refuses)
      lists.gemm_library.push_back(
          std::make_unique<Double>(gpu, "library one", deed, vendor_calls));
  }
  Engines make() { return {*gpu.device, options, std::move(lists)}; }
};

const GemmShape kShape = {24, 40, 32, false, true, false, false};

/// The engines' result of integers must be the reference's.
void check_exact(Scene& scene, Engines& engines, const GemmShape& shape) {
  OpCase op = ops_test::gemm_case(shape, DType::bf16, DType::f32);
  for (auto& spec : op.buffers) spec.content = ops_test::Content::integer, spec.spread = 2;
  GemmOnDevice call(op, shape, 0, 0);
  engines.gemm(*scene.gpu.queue, call.args);
  scene.gpu.queue->synchronize();
  Queue host_queue;
  auto expected = op.make_buffers();
  op.call(*make_reference_ops(), host_queue, expected);
  CHECK(call.result().same_bytes(expected[2]));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("engines that agree are timed once") {
  Scene scene(Deed::right);
  Engines engines = scene.make();
  check_exact(scene, engines, kShape);
  CHECK(engines.notes().empty());
  CHECK_THAT(engines.table(), contains("gemm 24x40x32 NT bf16>fp32"));
  CHECK_THAT(engines.table(), contains("native one"));
  CHECK_THAT(engines.table(), contains("library one"));
  const int before = scene.native_calls + scene.vendor_calls;
  check_exact(scene, engines, kShape);
  CHECK(scene.native_calls + scene.vendor_calls == before + 1);
}

TEST_CASE("an engine with a wrong result is dropped with a note") {
  for (const Deed deed : {Deed::wrong, Deed::slightly_wrong, Deed::fails}) {
    Scene scene(deed);
    Engines engines = scene.make();
    check_exact(scene, engines, kShape);
    REQUIRE(engines.notes().size() == 1);
    CHECK_THAT(engines.notes()[0], contains("library one"));
    CHECK_THAT(engines.notes()[0], contains("gemm 24x40x32"));
    CHECK_THAT(engines.notes()[0], contains(deed == Deed::fails ? "out of order" : "native one"));
    const int calls = scene.vendor_calls;
    check_exact(scene, engines, kShape);
    CHECK(scene.vendor_calls == calls);
  }
}

TEST_CASE("timing does not touch what is accumulated") {
  for (const Deed deed : {Deed::right, Deed::wrong}) {
    Scene scene(deed);
    Engines engines = scene.make();
    GemmShape shape = kShape;
    shape.accumulate = true;
    check_exact(scene, engines, shape);
    shape.bias = true;
    check_exact(scene, engines, shape);
  }
}

TEST_CASE("one engine is not timed") {
  Scene scene(Deed::refuses);
  Engines engines = scene.make();
  check_exact(scene, engines, kShape);
  CHECK(scene.native_calls == 1);
}

TEST_CASE("without tuning the first engine is used") {
  Scene scene(Deed::right);
  scene.options.tune = false;
  Engines engines = scene.make();
  check_exact(scene, engines, kShape);
  CHECK(scene.vendor_calls == 1);
  CHECK(scene.native_calls == 0);
}

TEST_CASE("nothing is timed in a recording") {
  Scene scene(Deed::right);
  Engines engines = scene.make();
  OpCase op = ops_test::gemm_case(kShape, DType::bf16, DType::f32);
  for (auto& spec : op.buffers) spec.content = ops_test::Content::integer, spec.spread = 2;
  GemmOnDevice call(op, kShape, 0, 0);
  scene.gpu.queue->record(0, [&] { engines.gemm(*scene.gpu.queue, call.args); });
  scene.gpu.queue->synchronize();
  CHECK(scene.vendor_calls == 1);  // libraries are preferred
  CHECK(scene.native_calls == 0);
  CHECK(engines.table().empty());
  Queue host_queue;
  auto expected = op.make_buffers();
  op.call(*make_reference_ops(), host_queue, expected);
  CHECK(call.result().same_bytes(expected[2]));
  check_exact(scene, engines, kShape);  // outside, it is
  CHECK(scene.native_calls > 0);
}

TEST_CASE("engines may be restricted") {
  {
    Scene scene(Deed::right);
    scene.options.gemm = EngineRule::native;
    Engines engines = scene.make();
    check_exact(scene, engines, kShape);
    CHECK(scene.vendor_calls == 0);
  }
  {
    Scene scene(Deed::right);
    scene.options.gemm = EngineRule::library;
    Engines engines = scene.make();
    check_exact(scene, engines, kShape);
    CHECK(scene.native_calls == 0);
  }
  {
    Scene scene(Deed::refuses);
    scene.options.gemm = EngineRule::library;
    CHECK_THROWS_WITH(scene.make(), contains("cuBLASLt is not there"));
  }
  {
    Scene scene(Deed::right);
    scene.options.attention = EngineRule::library;
    CHECK_THROWS_WITH(scene.make(), contains("cuDNN is not there"));
  }
}

TEST_CASE("a library that cannot do a shape is told") {
  Scene scene(Deed::refuses);
  scene.lists.gemm_library.push_back(
      std::make_unique<Double>(scene.gpu, "choosy", Deed::refuses, scene.vendor_calls));
  scene.options.gemm = EngineRule::library;
  Engines engines = scene.make();
  const OpCase op = ops_test::gemm_case(kShape, DType::bf16, DType::f32);
  GemmOnDevice call(op, kShape, 0, 0);
  CHECK_THROWS_WITH(engines.gemm(*scene.gpu.queue, call.args),
                    contains("no library can do gemm 24x40x32"));
}

TEST_CASE("choices live on in a file") {
  const ScratchFolder folder("engines");
  const std::string path = folder.path() + "/choices";
  {
    Scene scene(Deed::right);
    Engines engines = scene.make();
    check_exact(scene, engines, kShape);
    engines.save_cache(path);
  }
  const std::string text = text_of(path);
  CHECK_THAT(text, contains("transformer3d engine choices 1: "));
  CHECK_THAT(text, contains("gemm 24x40x32 NT bf16>fp32\t"));
  const bool native = text.find(">fp32\tnative one\t") != std::string::npos;
  const auto calls_with = [&](const std::string& content, std::size_t notes) {
    std::ofstream(path) << content;
    Scene scene(Deed::right);
    scene.options.cache_file = path;
    Engines engines = scene.make();
    CHECK(engines.notes().size() == notes);
    check_exact(scene, engines, kShape);
    return std::pair(scene.native_calls, scene.vendor_calls);
  };
  CHECK(calls_with(text, 0) == std::pair(native ? 1 : 0, native ? 0 : 1));
  // Other versions, an engine that is no more, a damaged line, no file: timed again.
  std::string other = text;
  other.replace(other.find("driver "), 7, "DRIVER ");
  CHECK(calls_with(other, 0).first > 1);
  std::string gone = text;
  gone.replace(gone.find(">fp32\t") + 6, 3, "xyz");
  CHECK(calls_with(gone, 0).first > 1);
  CHECK(calls_with(text.substr(0, text.size() - 3) + "?\n", 1).first > 1);
  CHECK(calls_with("", 0).first > 1);
}

TEST_CASE("a file that cannot be read is told") {
  const ScratchFolder folder("engines");  // opens like a file; reading it fails
  Scene scene(Deed::right);
  scene.options.cache_file = folder.path();
  const Engines engines = scene.make();
  REQUIRE(engines.notes().size() == 1);
  CHECK_THAT(engines.notes().front(), contains("cannot be read"));
}

TEST_CASE("a file that cannot be written is told") {
  Scene scene(Deed::right);
  const Engines engines = scene.make();
  CHECK_THROWS_WITH(engines.save_cache("/nonexistent/folder/choices"),
                    contains("cannot write the engine choices"));
}

TEST_CASE("coarse rounding is used where it is asked for, whatever is faster") {
  Gpu gpu;
  EngineOptions options;
  options.fp8 = true;
  Engines engines(*gpu.device, options);
  const OpCase op = ops_test::gemm_case(kShape, DType::bf16, DType::f32);
  GemmOnDevice call(op, kShape, 0, 0);
  engines.gemm(*gpu.queue, call.args);
  gpu.queue->synchronize();
  CHECK_THAT(engines.table(), contains("fp8"));
}

}  // namespace t3d::test
