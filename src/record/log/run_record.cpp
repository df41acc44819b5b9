#include "record/log/run_record.hpp"

#include "core/parse_json.hpp"
#include "core/random.hpp"
#include "io/json_fields.hpp"
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

constexpr int kFormat = 1;

std::string fault_in(const RecordJson& json) {
  if (!json.is_object()) return fmt::format("it is a JSON {}, no object", json.type_name());
  const RecordJson format = json.value("format", RecordJson());
  if (format != kFormat)
    return fmt::format("its format is {}, and this program knows {}",
                       format.dump(-1, ' ', false, RecordJson::error_handler_t::replace), kFormat);
  for (const char* table : {"programs", "hosts", "ranks", "inputs", "plans", "data"})
    if (json.contains(table) && !json[table].is_object())
      return fmt::format("{} is no object", table);
  if (!json.contains("lives") || !json["lives"].is_array()) return "lives is no list";
  for (std::size_t at = 0; at < json["lives"].size(); ++at) {
    const RecordJson& life = json["lives"][at];
    if (!life.is_object()) return fmt::format("lives[{}] is no object", at);
    if (life.contains("end") && !life["end"].is_object() && !life["end"].is_null())
      return fmt::format("lives[{}].end is no object", at);
  }
  return "";
}

struct ReadRecord {
  RecordJson json;
  std::string fault;  // empty: it is a record
};
ReadRecord read_record(const std::string& text) {
  try {
    RecordJson json = parse_json<RecordJson>(text, "run.json");
    std::string fault = fault_in(json);
    return {std::move(json), std::move(fault)};
  } catch (const Error&) {
    return {{}, "its brackets nest too deep"};
  } catch (const RecordJson::exception&) {
    return {{}, "it is no JSON"};
  }
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
  return {{"version", program.version},       {"commit", program.commit},
          {"compiler", program.compiler},     {"flags", program.flags},
          {"build_type", program.build_type}, {"build", or_null(program.build)},
          {"mpi", or_null(program.mpi)},      {"libraries", program.libraries}};
}

RecordJson host_json(const HostFacts& host) {
  RecordJson gpus = RecordJson::array();
  for (const GpuFacts& gpu : host.gpus)
    gpus.push_back({{"name", gpu.name},
                    {"identity", gpu.identity},
                    {"driver", gpu.driver},
                    {"memory_bytes", gpu.memory_bytes}});
  return {{"name", host.name},
          {"kernel", host.kernel},
          {"processor", host.processor},
          {"sockets", host.sockets},
          {"cores", host.cores},
          {"quota_cores", or_null(host.quota_cores)},
          {"most_clock_mhz", or_null(host.most_clock_mhz)},
          {"memory_bytes", host.memory_bytes},
          {"memory_limit_bytes", or_null(static_cast<double>(host.memory_limit_bytes))},
          {"gpus", gpus}};
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
  return {{"ended", end.ended},
          {"code", end.code},
          {"reason", end.reason},
          {"steps", end.steps},
          {"seconds", end.seconds},
          {"counted_bytes", end.counted},
          {"predicted_bytes", end.predicted},
          {"tensor_bytes", end.tensor_bytes},
          {"resident_bytes", end.resident_bytes},
          {"cpu_joules", or_null(end.cpu_joules)},
          {"gpu_joules", or_null(end.gpu_joules)},
          {"energy_steps", end.energy_steps},
          {"why_no_energy", or_null(end.why_no_energy)},
          {"plan", end.plan}};
}

RecordJson new_record() {
  RecordJson json;
  json["format"] = kFormat;
  json["lives"] = RecordJson::array();
  return json;
}

}  // namespace

std::string damaged_name(const std::string& path) {
  std::string name = path + ".damaged";
  for (int number = 2; path_exists(name); ++number)
    name = fmt::format("{}.damaged-{}", path, number);
  return name;
}

std::string text_hash(const std::string& text) { return fmt::format("{:016x}", stream_of(text)); }

std::string run_record_fault(const std::string& text) { return read_record(text).fault; }

std::optional<PutAside> add_life_start(const std::string& dir, const LifeStart& start) {
  const std::string path = path_of(dir);
  auto [record, fault] =
      path_exists(path) ? read_record(read_text_file(path)) : ReadRecord{new_record(), ""};
  std::optional<PutAside> put_aside;
  if (!fault.empty()) {
    put_aside = PutAside{damaged_name(path), fault};
    rename_durably(path, put_aside->path);
    record = new_record();
  }
  const RecordJson life = life_json(start, record);
  record["lives"].push_back(life);
  write(dir, record);
  return put_aside;
}

void add_life_end(const std::string& dir, const LifeEnd& end) {
  auto [record, fault] = read_record(read_text_file(path_of(dir)));
  if (!fault.empty() || record["lives"].empty())
    throw_error(ExitCode::io, "{} is no record of a run any more", path_of(dir));
  record["lives"].back()["end"] = end_json(end);
  write(dir, record);
}

}  // namespace t3d
