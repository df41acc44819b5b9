#include "tensor3d/model_shape.hpp"

#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "tensor3d/frozen.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

// The input's gradient has to pass frozen weights, their own is not computed.
TEST_CASE("training flops of a token leave out the gradients of what is frozen") {
  ModelConfig all = lora_input().model;
  const LoraOptions lora = all.lora;
  all.lora = {};
  const auto count = [](const ModelConfig& model) {
    return static_cast<double>(parameter_counts(model).all);
  };
  for (const bool tied : {true, false}) {
    all.tied_embeddings = tied;
    const double looked_up = tied ? 0 : static_cast<double>(all.vocab * all.hidden);
    const double attention =
        6.0 * static_cast<double>(all.layers * all.heads * all.head_size() * all.context);
    const double whole = 6 * (count(all) - looked_up) + attention;
    CHECK(flops_per_token(all, false) == whole);

    ModelConfig adapted = all;
    adapted.lora = lora;
    CHECK(flops_per_token(adapted, false) ==
          whole - 2 * (count(all) - looked_up) + 6 * (count(adapted) - count(all)));

    ModelConfig table = all;
    table.freeze = {"wte.*"};
    CHECK(flops_per_token(table, false) ==
          whole - (tied ? 2 * static_cast<double>(all.vocab * all.hidden) : 0));
  }
}

}  // namespace
