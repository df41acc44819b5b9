#include "run/provenance.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "comm/placement.hpp"
#include "config/defaults.hpp"
#include "core/phase_clock.hpp"
#include "device/control_groups.hpp"
#include "device/process_status.hpp"
#include "hetero/cost/flops.hpp"
#include "t3d_version.hpp"
#include "tensor3d/frozen.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;

constexpr double kSampleSeconds = 5;  // between two looks at the counters of energy

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<JobFacts> slurm_job() {
  if (variable("SLURM_JOB_ID").empty()) return std::nullopt;
  return JobFacts{variable("SLURM_JOB_ID"), variable("SLURM_JOB_NAME"),
                  variable("SLURM_JOB_PARTITION"), variable("SLURM_CLUSTER_NAME"),
                  variable("SLURM_JOB_NODELIST")};
}

std::vector<std::string> own_command() {
  std::vector<std::string> words;
  std::string text = file_text("/proc/self/cmdline");
  for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1)
    words.emplace_back(text.c_str() + at);
  return words;
}

ProgramFacts own_program() {
  return {kVersion,           kGit,
          kCompiler,          kFlags,
          kBuildType,         mpi_library_version(),
          program_build_id(), loaded_libraries()};
}

// A rank's facts on their way to rank 0.

Json host_json(const HostFacts& host) {
  Json json{{"name", host.name},           {"kernel", host.kernel},
            {"processor", host.processor}, {"cores", host.cores},
            {"sockets", host.sockets},     {"quota", host.quota_cores},
            {"clock", host.clock_mhz},     {"most_clock", host.most_clock_mhz},
            {"memory", host.memory_bytes}, {"limit", host.memory_limit_bytes},
            {"boot", host.boot},           {"gpus", Json::array()}};
  for (const GpuFacts& gpu : host.gpus)
    json["gpus"].push_back({gpu.name, gpu.identity, gpu.driver, gpu.memory_bytes});
  return json;
}

HostFacts host_of(const Json& json) {
  HostFacts host;
  host.name = json["name"];
  host.kernel = json["kernel"];
  host.processor = json["processor"];
  host.boot = json["boot"];
  host.cores = json["cores"];
  host.sockets = json["sockets"];
  host.quota_cores = json["quota"];
  host.clock_mhz = json["clock"];
  host.most_clock_mhz = json["most_clock"];
  host.memory_bytes = json["memory"];
  host.memory_limit_bytes = json["limit"];
  for (const Json& gpu : json["gpus"]) host.gpus.push_back({gpu[0], gpu[1], gpu[2], gpu[3]});
  return host;
}

std::string rank_text(const Machine& machine, const Ledger& predicted, bool first_of_node) {
  const bool on_gpu = machine.choice().gpu >= 0;
  Json json{{"device", on_gpu ? machine.device().name() : "cpu"},
            {"threads", on_gpu ? 0 : machine.threads()},
            {"predicted", Json::object()}};
  for (const auto& [key, entry] : predicted.table())
    json["predicted"][key.second] = json["predicted"].value(key.second, index_t{0}) + entry.bytes;
  if (first_of_node) json["host"] = host_json(host_facts());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// On rank 0: what all ranks have said.
void add_ranks(const std::vector<std::string>& texts, const std::vector<int>& nodes,
               LifeStart& start) {
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const Json json = Json::parse(texts[rank]);
    if (json.contains("host")) start.hosts.push_back(host_of(json["host"]));
    start.ranks.push_back({nodes[rank], json["device"], json["threads"]});
    for (const auto& [axis, bytes] : json["predicted"].items())
      start.predicted_step[axis] += bytes.get<index_t>();
  }
}

/// Threads of CPU ranks have fewer cores than they are: on a host, or on hosts that are one
/// machine.
bool shares_cores(const LifeStart& start) {
  std::vector<double> threads(start.hosts.size());
  for (const RankPlace& rank : start.ranks)
    threads[static_cast<std::size_t>(rank.host)] += rank.device == "cpu" ? rank.threads : 0;
  std::map<std::string, double> of_machine;
  for (std::size_t at = 0; at < threads.size(); ++at) {
    const HostFacts& host = start.hosts[at];
    const double cores =
        host.quota_cores > 0 ? std::min<double>(host.quota_cores, host.cores) : host.cores;
    if (threads[at] > cores) return true;
    if (!host.boot.empty() && (of_machine[host.boot] += threads[at]) > host.cores) return true;
  }
  return false;
}

/// This rank is the first of its node.
bool is_first(const std::vector<int>& nodes, int rank) {
  const auto own = static_cast<std::ptrdiff_t>(rank);
  return std::find(nodes.begin(), nodes.begin() + own, nodes[static_cast<std::size_t>(rank)]) ==
         nodes.begin() + own;
}

}  // namespace

void describe_plan(const Plan& plan, LifeStart& start) {
  start.plan = plan.text();
  start.replicas = std::ssize(plan.replicas);
  for (const ReplicaPlan& replica : plan.replicas) {
    const auto& [p, q, r] = replica.cuboid;
    start.cuboids.push_back({p, q, r});
  }
  start.sequences = plan.sequences();
  start.context = plan.model.context;
  start.parameters = parameter_counts(plan.model).all;
  start.flops_per_token = flops_per_token(plan.model, false);
  start.number_format = word_of(plan.compute);
}

void describe_links(const Speeds& speeds, LifeStart& start) {
  const auto facts = [](const LinkSpeed& link) -> std::optional<LinkFacts> {
    if (link.alpha_seconds <= 0 && link.beta_seconds_per_byte <= 0) return std::nullopt;
    return LinkFacts{link.alpha_seconds, link.beta_seconds_per_byte};
  };
  start.inside = facts(speeds.inside);
  start.between = facts(speeds.between);
}

std::string reproducible_input(Config config, const Origins& origins) {
  if (!origins.contains("checkpoint.dir")) config.checkpoint.dir.clear();  // of run.dir
  return resolved_text(config, origins);
}

void Provenance::keep(const std::function<void()>& write) {
  try {
    lock_->check();  // the folder may be another job's by now
    write();
  } catch (const std::exception& error) {
    warn_(fmt::format("run.json does not say all of this life: {}", error.what()));
  }
}

void Provenance::begin(Machine& machine, LifeStart start, const Ledger& predicted) {
  Communicator& world = machine.world();
  const std::vector<int> nodes = node_of_ranks(world);
  const bool first = is_first(nodes, world.rank());
  const std::vector<bool> crowded = crowded_ranks(world);
  const std::vector<std::string> texts = gather_texts(world, rank_text(machine, predicted, first));
  if (first) energy_.emplace();
  begun_ = true;
  if (world.rank() != 0) return;
  const BusyScope busy("writing " + dir_ + "/run.json");
  keep([&] {
    add_ranks(texts, nodes, start);
    if (start.hosts.size() == 1) start.between.reset();  // then it was not measured
    start.shared_cores =
        std::find(crowded.begin(), crowded.end(), true) != crowded.end() || shares_cores(start);
    start.emulated = start.emulated || share_machine(start.hosts);
    start.started = seconds_since_1970() - process_age_seconds();
    start.job = slurm_job();
    start.command = own_command();
    start.folder = std::filesystem::current_path().string();
    start.environment = telling_environment();
    start.program = own_program();
    if (const auto put_aside = add_life_start(dir_, start))
      warn_(
          fmt::format("{}/run.json was no record of a run ({}); it is now {}, and a new one begins",
                      dir_, put_aside->fault, put_aside->path));
    recorded_ = true;
  });
}

void Provenance::begin_steps() {
  if (energy_) energy_.emplace();
  sampled_ = PhaseClock::now();
}

void Provenance::step_done(bool last) {
  ++steps_;
  if (!last && PhaseClock::now() - sampled_ < kSampleSeconds) return;
  if (energy_) energy_->sample();
  sampled_ = PhaseClock::now();
  energy_steps_ = steps_;
}

void Provenance::end(Communicator& world, const RunTotals& totals, int code,
                     const std::string& reason, const std::string& plan) {
  if (!begun_) return;
  // "cpu joules", "gpu joules" and why there are none, of each node.
  std::string own;
  if (energy_)
    own = fmt::format("{} {} {}", energy_->cpu_joules().value_or(NAN),
                      energy_->gpu_joules().value_or(NAN), energy_->why_no_cpu());
  const std::vector<std::string> of_ranks = gather_texts(world, own);
  // Without a beginning of this life the end would be put to the one before.
  if (world.rank() != 0 || !recorded_) return;
  LifeEnd end;
  end.ended = seconds_since_1970();
  end.code = code;
  end.reason = reason;
  end.steps = totals.steps;
  end.seconds = totals.seconds;
  end.tensor_bytes = static_cast<index_t>(totals.tensor_bytes);
  end.resident_bytes = static_cast<index_t>(totals.resident_bytes);
  end.plan = plan;
  for (const AxisRow& row : totals.axes) {
    end.counted[row.axis] = row.counted_bytes;
    if (row.predicted_bytes) end.predicted[row.axis] = *row.predicted_bytes;
  }
  double cpu = 0, gpu = 0;  // not a number as soon as a node has none
  for (const std::string& text : of_ranks) {
    if (text.empty()) continue;
    char* rest = nullptr;
    cpu += std::strtod(text.c_str(), &rest);
    gpu += std::strtod(rest, &rest);
    if (end.why_no_energy.empty() && *rest != '\0') end.why_no_energy = rest + 1;
  }
  if (std::isfinite(cpu)) end.cpu_joules = cpu;
  if (std::isfinite(gpu)) end.gpu_joules = gpu;
  end.energy_steps = energy_steps_;
  later_(dir_ + "/run.json", [dir = dir_, end, lease = lock_->lease()] {
    try {
      lease.check();  // the folder may be another job's by now
      add_life_end(dir, end);
    } catch (const std::exception& error) {
      throw_error(ExitCode::io, "run.json does not say all of this life: {}", error.what());
    }
  });
}

}  // namespace t3d
