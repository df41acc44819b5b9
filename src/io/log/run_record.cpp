#include "io/log/run_record.hpp"

#include "core/error.hpp"
#include "core/random.hpp"
#include "io/log/json_fields.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

using RecordJson = nlohmann::ordered_json;

std::string path_of(const std::string& dir) { return dir + "/run.json"; }

/// What is not UTF-8 becomes its replacement character.
std::string text_of(const RecordJson& json) {
  return json.dump(1, ' ', false, RecordJson::error_handler_t::replace);
}

void write(const std::string& dir, const RecordJson& json) {
  write_text_durably(path_of(dir), text_of(json) + "\n");
}

/// Nothing where it is no record of this kind.
std::optional<RecordJson> parse(const std::string& text) {
  RecordJson json = RecordJson::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("lives") || !json["lives"].is_array())
    return std::nullopt;
  return json;
}

/// Under the hash of its text in a table of `record`; what is there already stays.
std::string keep(RecordJson& record, const char* table, const RecordJson& value) {
  const std::string key = text_hash(value.is_string() ? value.get<std::string>() : text_of(value));
  if (!record[table].contains(key)) record[table][key] = value;
  return key;
}

RecordJson or_null(double number) { return number > 0 ? RecordJson(number) : RecordJson(nullptr); }
RecordJson or_null(const std::string& text) {
  return text.empty() ? RecordJson(nullptr) : RecordJson(text);
}
RecordJson or_null(const std::optional<double>& number) {
  return number ? RecordJson(*number) : RecordJson(nullptr);
}

RecordJson program_json(const ProgramFacts& program) {
  RecordJson json;
  json["version"] = program.version;
  json["commit"] = program.commit;
  json["compiler"] = program.compiler;
  json["flags"] = program.flags;
  json["build_type"] = program.build_type;
  json["mpi"] = or_null(program.mpi);
  json["libraries"] = program.libraries;
  return json;
}

RecordJson host_json(const HostFacts& host) {
  RecordJson json;
  json["name"] = host.name;
  json["kernel"] = host.kernel;
  json["processor"] = host.processor;
  json["sockets"] = host.sockets;
  json["cores"] = host.cores;
  json["quota_cores"] = or_null(host.quota_cores);
  json["most_clock_mhz"] = or_null(host.most_clock_mhz);
  json["memory_bytes"] = host.memory_bytes;
  json["memory_limit_bytes"] = or_null(static_cast<double>(host.memory_limit_bytes));
  json["gpus"] = RecordJson::array();
  for (const GpuFacts& gpu : host.gpus)
    json["gpus"].push_back({{"name", gpu.name},
                            {"identity", gpu.identity},
                            {"driver", gpu.driver},
                            {"memory_bytes", gpu.memory_bytes}});
  return json;
}

RecordJson ranks_json(const LifeStart& start) {
  RecordJson json;
  json["count"] = start.ranks.size();
  json["hosts"] = json["devices"] = json["threads"] = RecordJson::array();
  for (const RankPlace& rank : start.ranks) {
    json["hosts"].push_back(rank.host);
    json["devices"].push_back(rank.device);
    json["threads"].push_back(rank.threads);
  }
  return json;
}

RecordJson job_json(const std::optional<JobFacts>& job) {
  if (!job) return nullptr;
  return {{"id", job->id},
          {"name", job->name},
          {"partition", job->partition},
          {"cluster", job->cluster},
          {"node_list", job->node_list}};
}

RecordJson link_json(const std::optional<LinkFacts>& link) {
  if (!link) return nullptr;
  return {{"alpha_seconds", link->alpha_seconds},
          {"beta_seconds_per_byte", link->beta_seconds_per_byte}};
}

/// What changes from life to life; names what `record` keeps of the rest.
RecordJson life_json(const LifeStart& start, RecordJson& record) {
  RecordJson json;
  json["life"] = start.life;
  json["run"] = start.run;
  json["started"] = start.started;
  json["job"] = job_json(start.job);
  json["command"] = start.command;
  json["folder"] = start.folder;
  json["environment"] = RecordJson::object();
  for (const auto& [name, value] : start.environment) json["environment"][name] = value;
  json["program"] = keep(record, "programs", program_json(start.program));
  json["hosts"] = RecordJson::array();
  json["clock_mhz"] = RecordJson::array();
  for (const HostFacts& host : start.hosts) {
    json["hosts"].push_back(keep(record, "hosts", host_json(host)));
    json["clock_mhz"].push_back(or_null(host.clock_mhz));
  }
  json["ranks"] = keep(record, "ranks", ranks_json(start));
  json["input"] = keep(record, "inputs", start.input);
  json["plan"] = keep(record, "plans", start.plan);
  json["data"] = keep(record, "data", start.data);
  json["data_hash"] = start.data_hash;
  json["tokenizer_hash"] = or_null(start.tokenizer_hash);
  json["replicas"] = start.replicas;
  json["cuboids"] = start.cuboids;
  json["first_step"] = start.first_step;
  json["sequences"] = start.sequences;
  json["context"] = start.context;
  json["parameters"] = start.parameters;
  json["flops_per_token"] = start.flops_per_token;
  json["number_format"] = start.number_format;
  json["links"] = {{"inside", link_json(start.inside)}, {"between", link_json(start.between)}};
  json["matmul_rate"] = or_null(start.matmul_rate);
  json["vendor_peak"] = or_null(start.vendor_peak);
  json["emulated"] = start.emulated;
  json["shared_cores"] = start.shared_cores;
  json["predicted_step_bytes"] = start.predicted_step;
  json["end"] = nullptr;
  return json;
}

RecordJson end_json(const LifeEnd& end) {
  RecordJson json;
  json["ended"] = end.ended;
  json["code"] = end.code;
  json["reason"] = end.reason;
  json["steps"] = end.steps;
  json["seconds"] = end.seconds;
  json["counted_bytes"] = end.counted;
  json["predicted_bytes"] = end.predicted;
  json["tensor_bytes"] = end.tensor_bytes;
  json["resident_bytes"] = end.resident_bytes;
  json["cpu_joules"] = or_null(end.cpu_joules);
  json["gpu_joules"] = or_null(end.gpu_joules);
  json["energy_steps"] = end.energy_steps;
  json["why_no_energy"] = or_null(end.why_no_energy);
  json["plan"] = end.plan;
  return json;
}

RecordJson new_record() {
  RecordJson json;
  json["format"] = 1;
  json["lives"] = RecordJson::array();
  return json;
}

/// A name that nothing has.
std::string free_name(const std::string& path) {
  std::string name = path + ".damaged";
  for (int number = 2; path_exists(name); ++number)
    name = fmt::format("{}.damaged-{}", path, number);
  return name;
}

}  // namespace

std::string text_hash(const std::string& text) { return fmt::format("{:016x}", stream_of(text)); }

std::string add_life_start(const std::string& dir, const LifeStart& start) {
  const std::string path = path_of(dir);
  std::optional<RecordJson> record = new_record();
  std::string put_aside;
  if (path_exists(path)) record = parse(read_text_file(path));
  if (!record) {
    put_aside = free_name(path);
    rename_durably(path, put_aside);
    record = new_record();
  }
  const RecordJson life = life_json(start, *record);
  (*record)["lives"].push_back(life);
  write(dir, *record);
  return put_aside;
}

void add_life_end(const std::string& dir, const LifeEnd& end) {
  std::optional<RecordJson> record = parse(read_text_file(path_of(dir)));
  if (!record || (*record)["lives"].empty())
    throw_error(ExitCode::io, "{} is no record of a run any more", path_of(dir));
  (*record)["lives"].back()["end"] = end_json(end);
  write(dir, *record);
}

}  // namespace t3d
