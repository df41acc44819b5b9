#include "ops/cuda/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "ops/cuda/gemm_plan.hpp"

namespace t3d::cuda {
namespace {

Engines::Lists all_engines(Device& device, const EngineOptions& options) {
  Engines::Lists lists;
  lists.native_gemm = make_native_gemm_engines(device, options);
  lists.native_attention = make_native_attention_engines(device);
  // A library that does not start is an error only where it is demanded.
  const auto add = [&](EngineRule wanted, const auto& make) {
    if (wanted == EngineRule::native) return;
    try {
      make();
    } catch (const Error& error) {
      if (wanted == EngineRule::library || error.code() != ExitCode::unavailable) throw;
      lists.notes.emplace_back(error.what());
    }
  };
  add(options.gemm, [&] { lists.gemm_library = make_library_gemm_engines(device, options); });
  add(options.attention, [&] { lists.attention_library = make_library_attention_engines(device); });
  return lists;
}

/// What timings depend on beside the shape.
std::string header_of(const EngineOptions& options) {
  int ordinal = 0;
  check(cudaGetDevice(&ordinal), "asking for the current GPU");
  const CudaInfo info = cuda_info(ordinal);
  return fmt::format(
      "{}, capability {}, driver {}, CUDA {}, cuBLASLt {}, cuDNN {}, gemm {}, attention {}, "
      "tf32 {}, fp8 {}",
      info.name, info.capability, info.driver, info.runtime, gemm_library_version(),
      attention_library_version(), word_of(options.gemm), word_of(options.attention),
      options.tf32, options.fp8);
}

std::string_view alignment(const ConstTensorView& x) { return can_load_16_bytes(x) ? "" : "'"; }

// A prime marks an operand that 16-byte accesses cannot reach.
std::string key_of(const GemmArgs& args) {
  return fmt::format("gemm {}x{}x{} {}{}{}{} {}>{}{}{}{}", args.c.rows, args.c.cols, depth_of(args),
                     args.transpose_a ? "T" : "N", alignment(args.a), args.transpose_b ? "T" : "N",
                     alignment(args.b), name_of(args.a.dtype), name_of(args.c.dtype),
                     alignment(args.c), args.accumulate ? " +C" : "",
                     args.bias.data != nullptr ? " +bias" : "");
}

std::string key_of(const AttentionArgs& args, std::string_view verb) {
  return fmt::format("{} {}x{} {}/{}x{}{} {}{}", verb, args.sequences, args.length, args.heads,
                     args.kv_heads, args.head_size, args.causal ? " causal" : "",
                     name_of(args.qkv.dtype), alignment(args.qkv));
}

// Two roundings of the result, and of fp32 sums the growth of their error with their length.
double tolerance_of(const GemmArgs& args, OperandRounding rounding) {
  const double depth = static_cast<double>(depth_of(args));
  if (rounding == OperandRounding::fp8) return 0x1p-6;  // its units sum in less than fp32
  if (rounding == OperandRounding::tf32) return 1e-3;
  if (is_half(args.a.dtype)) return 0x1p-7;
  return 1e-5 * std::max(1.0, std::sqrt(depth / 16384));
}

/// The engines that can do a call, in order of preference: libraries first, they are the fastest
/// more often than not.
template <class Engine>
struct Able {
  std::vector<Engine*> engines;
  std::vector<bool> eligible;
  std::size_t judge = 0;  // the first native one
};

template <class Engine, class Usable>
Able<Engine> able_engines(EngineRule wanted,
                          const std::vector<std::unique_ptr<Engine>>& library,
                          const std::vector<std::unique_ptr<Engine>>& native,
                          const Usable& usable) {
  Able<Engine> able;
  const auto add = [&](const auto& engines, bool eligible) {
    for (const auto& engine : engines) {
      if (!usable(*engine)) continue;
      able.engines.push_back(engine.get());
      able.eligible.push_back(eligible);
    }
  };
  if (wanted != EngineRule::native) add(library, true);
  able.judge = able.engines.size();
  add(native, wanted != EngineRule::library);
  return able;
}

template <class Engine>
void require_eligible(const Able<Engine>& able, const std::string& key, const char* what) {
  if (std::find(able.eligible.begin(), able.eligible.end(), true) != able.eligible.end()) return;
  throw_error(ExitCode::unavailable,
              "no library can do {}, and the {} engine is set to \"library\"; set it to \"auto\"",
              key, what);
}

void require_there(EngineRule wanted, bool library_there, const char* what,
                   const char* library) {
  if (wanted == EngineRule::library && !library_there)
    throw_error(ExitCode::unavailable,
                "the {} engine is set to \"library\", but {} is not there: set it to \"auto\" or "
                "\"native\", or build on a machine that has it",
                what, library);
}

}  // namespace

Engines::Engines(Device& device, EngineOptions options)
    : Engines(device, options, all_engines(device, options)) {}

Engines::Engines(Device& device, EngineOptions options, Lists lists)
    : device_(device),
      options_(std::move(options)),
      lists_(std::move(lists)),
      choices_(header_of(options_)),
      notes_(std::move(lists_.notes)) {
  require_there(options_.gemm, !lists_.gemm_library.empty(), "matmul", "cuBLASLt");
  require_there(options_.attention, !lists_.attention_library.empty(), "attention", "cuDNN");
  if (options_.tune && !options_.cache_file.empty() && !choices_.load(options_.cache_file))
    notes_.push_back(
        fmt::format("the engine choices {} are damaged: what cannot be read is timed "
                    "again",
                    options_.cache_file));
}

// The contender for the call: the one remembered, the only one, or the winner of a trial.
std::size_t Engines::choose(Queue& queue, EngineTrial& trial) {
  std::size_t first = 0, eligible = 0;
  const std::string* known = choices_.find(trial.key);
  for (std::size_t i = trial.contenders.size(); i-- > 0;) {
    const Contender& contender = trial.contenders[i];
    if (!contender.eligible) continue;
    if (known != nullptr && contender.name == *known) return i;
    first = i;
    ++eligible;
  }
  if (eligible == 1 || !options_.tune) {
    choices_.put(trial.key, std::string(trial.contenders[first].name), {});
    return first;
  }
  try {
    Verdict verdict = hold_trial(device_, queue, trial);
    for (std::string& note : verdict.notes) notes_.push_back(std::move(note));
    choices_.put(trial.key, std::string(trial.contenders[verdict.winner].name),
                 std::move(verdict.timings));
    return verdict.winner;
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    notes_.push_back(fmt::format("engines for {} were not compared: {}", trial.key, error.what()));
    choices_.put(trial.key, std::string(trial.contenders[first].name), {});
    return first;
  }
}

void Engines::gemm(Queue& queue, const GemmArgs& args) {
  check_gemm(args);
  if (args.c.empty()) return;
  const std::string key = key_of(args);
  if (const auto known = gemms_.find(key); known != gemms_.end())
    return known->second->run(queue, args);

  // The coarsest rounding that the options ask for and that can be done here.
  OperandRounding coarsest = OperandRounding::none;
  const auto look = [&](const GemmEngines& engines) {
    for (const auto& engine : engines)
      if (engine->usable(args)) coarsest = std::max(coarsest, engine->rounding());
  };
  look(lists_.native_gemm);
  look(lists_.gemm_library);
  const auto able =
      able_engines(options_.gemm, lists_.gemm_library, lists_.native_gemm,
                   [&](const GemmEngine& e) { return e.rounding() == coarsest && e.usable(args); });
  require_eligible(able, key, "matmul");
  if (is_recording(queue)) {
    const auto first = std::find(able.eligible.begin(), able.eligible.end(), true);
    return able.engines[static_cast<std::size_t>(first - able.eligible.begin())]->run(queue, args);
  }
  EngineTrial trial{key, {args.c}, args.accumulate, tolerance_of(args, coarsest), {}, able.judge};
  for (std::size_t i = 0; i < able.engines.size(); ++i)
    trial.contenders.push_back(
        {able.engines[i]->name(), able.eligible[i], [&, i](const std::vector<TensorView>& outputs) {
           GemmArgs call = args;
           call.c = outputs.front();
           able.engines[i]->run(queue, call);
         }});
  GemmEngine* chosen = able.engines[choose(queue, trial)];
  gemms_[key] = chosen;
  chosen->run(queue, args);
}

void Engines::attention(
    Queue& queue, const AttentionArgs& args, std::string_view verb,
    const std::vector<TensorView>& outputs,
    const std::function<void(AttentionEngine&, const std::vector<TensorView>&)>& call) {
  const std::string key = key_of(args, verb);
  if (const auto known = attentions_.find(key); known != attentions_.end())
    return call(*known->second, outputs);
  const auto able =
      able_engines(options_.attention, lists_.attention_library, lists_.native_attention,
                   [&](const AttentionEngine& engine) { return engine.usable(args); });
  require_eligible(able, key, "attention");
  const auto first = static_cast<std::size_t>(
      std::find(able.eligible.begin(), able.eligible.end(), true) - able.eligible.begin());
  if (outputs.front().empty() || is_recording(queue)) return call(*able.engines[first], outputs);

  // Engines round probabilities to 16 bits at different places.
  const double tolerance = is_half(args.qkv.dtype) ? 0x1p-6 : 1e-4;
  EngineTrial trial{key, outputs, false, tolerance, {}, able.judge};
  for (std::size_t i = 0; i < able.engines.size(); ++i)
    trial.contenders.push_back(
        {able.engines[i]->name(), able.eligible[i],
         [&, i](const std::vector<TensorView>& to) { call(*able.engines[i], to); }});
  AttentionEngine* chosen = able.engines[choose(queue, trial)];
  attentions_[key] = chosen;
  call(*chosen, outputs);
}

void Engines::attention_forward(Queue& queue, const AttentionArgs& args, TensorView out,
                                TensorView lse) {
  attention(queue, args, "attention_forward", {out, lse},
            [&](AttentionEngine& engine, const std::vector<TensorView>& to) {
              engine.forward(queue, args, to[0], to[1]);
            });
}

void Engines::attention_backward(Queue& queue, const AttentionArgs& args, ConstTensorView out,
                                 ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  attention(queue, args, "attention_backward", {dqkv},
            [&](AttentionEngine& engine, const std::vector<TensorView>& to) {
              engine.backward(queue, args, out, lse, dout, to[0]);
            });
}

}  // namespace t3d::cuda
