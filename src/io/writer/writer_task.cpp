#include "io/writer/writer_task.hpp"

#include <algorithm>
#include <ctime>

#include "core/finite.hpp"
#include "core/phase_clock.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/node_file.hpp"
#include "io/checkpoint/save_steps.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "io/packer.hpp"
#include "io/writer/snapshot.hpp"

namespace t3d {
namespace {

/// CPU time of all threads.
double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

enum TaskKind : index_t { kFile, kPublish };

void add(Packer& packer, const std::vector<std::string>& texts) {
  packer.add(std::ssize(texts));
  for (const std::string& text : texts) packer.add(text);
}

std::vector<std::string> texts_of(Unpacker& from) {
  std::vector<std::string> texts(static_cast<std::size_t>(from.number()));
  for (std::string& text : texts) text = from.text();
  return texts;
}

void add(Packer& packer, const CheckpointState& state) {
  packer.add(state.step);
  packer.add(state.run_id);
  packer.add(std::ssize(state.texts));
  for (const auto& [name, text] : state.texts) {
    packer.add(name);
    packer.add(text);
  }
  const Lineage& lineage = state.lineage;
  packer.add(lineage.number);
  packer.add(lineage.parent);
  packer.add(lineage.parent_run);
  packer.add(lineage.parent_step);
  packer.add(lineage.parent_lineage);
}

CheckpointState state_of(Unpacker& from) {
  CheckpointState state;
  state.step = from.number();
  state.run_id = from.text();
  for (index_t left = from.number(); left > 0; --left) {
    const std::string name = from.text();
    state.texts[name] = from.text();
  }
  Lineage& lineage = state.lineage;
  lineage.number = from.number();
  lineage.parent = from.text();
  lineage.parent_run = from.text();
  lineage.parent_step = from.number();
  lineage.parent_lineage = from.number();
  return state;
}

/// Writes one node file out of the ranks' shared memory.
TaskResult write_file(Unpacker& from, int snapshot) {
  const SavePlan plan(texts_of(from));
  const std::string folder = from.text(), name = from.text();
  CheckpointState state;
  state.run_id = from.text();
  state.step = from.number();
  const bool verify = from.number() != 0;
  const std::string without = from.text();
  const SnapshotLayout layout(plan);
  const SnapshotMemory memory = SnapshotMemory::opened(snapshot, layout.bytes());
  TaskResult result;
  NodeFile file(folder, name, plan, state);
  std::vector<std::byte> merged;
  for (const auto& round : plan.rounds())
    for (const Strip& strip : round) {
      const PlanTensor& tensor = plan.tensor_of(strip);
      const std::byte* data = layout.strip(strip, memory.data(), merged);
      if (result.not_finite.empty() && !all_finite(tensor.shape.dtype, data, strip.box.count()))
        result.not_finite = tensor.name;
      if (without.empty() || !tensor.name.starts_with(without))
        result.digest +=
            digest_of_box(tensor.name, tensor.shape.dtype, tensor.shape.cols, strip.box, data);
      file.write(strip, data);
    }
  result.text = text_of(file.finish(verify));
  return result;
}

TaskResult publish(Unpacker& from) {
  CheckpointOptions options;
  options.dir = from.text();
  options.keep = from.number();
  options.major_every = from.number();
  options.verify = from.number() != 0;
  Lease lease;
  const bool leased = from.number() != 0;
  lease.files = texts_of(from);
  lease.token = from.text();
  if (leased) options.lock = &lease;
  const CheckpointState state = state_of(from);
  const Fragment fragment = parse_fragment(from.text());
  const std::string partial = from.text(), owner = from.text();
  TaskResult result;
  result.text = publish_checkpoint(options, state, fragment, partial, owner);
  return result;
}

}  // namespace

std::string text_of(const FileTask& task) {
  Packer packer;
  packer.add(kFile);
  add(packer, task.descriptions);
  packer.add(task.folder);
  packer.add(task.name);
  packer.add(task.run_id);
  packer.add(task.step);
  packer.add(index_t{task.verify});
  packer.add(task.digest_without);
  return packer.take();
}

std::string text_of(const PublishTask& task) {
  Packer packer;
  packer.add(kPublish);
  packer.add(task.options.dir);
  packer.add(task.options.keep);
  packer.add(task.options.major_every);
  packer.add(index_t{task.options.verify});
  packer.add(index_t{task.lease.has_value()});
  const Lease lease = task.lease.value_or(Lease{});
  add(packer, lease.files);
  packer.add(lease.token);
  add(packer, task.state);
  packer.add(task.fragment);
  packer.add(task.partial);
  packer.add(task.owner);
  return packer.take();
}

TaskResult run_task(const std::string& text, int snapshot) {
  const double start = PhaseClock::now(), cpu = process_cpu_seconds();
  TaskResult result;
  try {
    Unpacker from(text);
    result = from.number() == kFile ? write_file(from, snapshot) : publish(from);
  } catch (const std::exception& error) {
    result.fault = as_error(error);
  }
  result.seconds = PhaseClock::now() - start;
  result.cpu_seconds = process_cpu_seconds() - cpu;
  return result;
}

std::string text_of(const TaskResult& result) {
  Packer packer;
  packer.add(index_t{result.fault.has_value()});
  packer.add(result.fault ? static_cast<index_t>(result.fault->code()) : 0);
  packer.add(result.fault ? std::string(result.fault->what()) : "");
  packer.add(result.text);
  packer.add(result.not_finite);
  packer.add(static_cast<index_t>(result.digest));
  for (const double seconds : {result.seconds, result.cpu_seconds})
    packer.add(static_cast<index_t>(seconds * 1e6));
  return packer.take();
}

std::string join_results(const std::string& lower, const std::string& higher) {
  TaskResult both = parse_result(lower);
  const TaskResult other = parse_result(higher);
  both.text = join_texts(both.text, other.text);
  if (both.not_finite.empty()) both.not_finite = other.not_finite;
  both.digest += other.digest;
  both.seconds = std::max(both.seconds, other.seconds);
  both.cpu_seconds += other.cpu_seconds;
  return text_of(both);
}

TaskResult result_of(const std::string& answer, const std::string& how) {
  TaskResult result;
  bool whole = true;
  try {
    result = parse_result(answer);
  } catch (const Error&) {  // it did not come to its last word
    whole = false;
  }
  if (!result.fault && (!whole || !how.empty()))
    result.fault =
        Error(ExitCode::io, fmt::format("the process that writes the checkpoint has ended: {}",
                                        how.empty() ? "without an answer" : how));
  return result;
}

TaskResult parse_result(const std::string& text) {
  Unpacker from(text);
  TaskResult result;
  const bool failed = from.number() != 0;
  const auto code = static_cast<ExitCode>(from.number());
  const std::string what = from.text();
  if (failed) result.fault = Error(code, what);
  result.text = from.text();
  result.not_finite = from.text();
  result.digest = static_cast<std::uint64_t>(from.number());
  for (double* seconds : {&result.seconds, &result.cpu_seconds})
    *seconds = static_cast<double>(from.number()) * 1e-6;
  return result;
}

}  // namespace t3d
