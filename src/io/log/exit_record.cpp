#include "io/log/exit_record.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "io/log/json_fields.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

std::string path_of(const std::string& dir) { return dir + "/exit.json"; }

}  // namespace

void write_exit_record(const std::string& dir, const ExitRecord& record, int rank) {
  nlohmann::ordered_json json;
  json["code"] = static_cast<int>(record.code);
  json["reason"] = record.reason;
  json["step"] = record.step;
  json["checkpoint"] = nullptr;
  if (record.checkpoint) json["checkpoint"] = *record.checkpoint;
  json["continue"] = record.goes_on;
  json["requeues"] = record.requeues;
  json["paused"] = record.paused;
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;  // what is not UTF-8
  const std::string unfinished = fmt::format("{}.rank-{}", path_of(dir), rank);
  // A rank that ends with an error may notice at the same moment that another one is lost.
  static std::mutex turn;
  const std::lock_guard lock(turn);
  write_text_durably(unfinished, json.dump(2, ' ', false, replace) + "\n");
  rename_durably(unfinished, path_of(dir));
}

std::optional<ExitRecord> read_exit_record(const std::string& dir) {
  if (!path_exists(path_of(dir))) return std::nullopt;
  const auto json = parse_object(read_record_file(path_of(dir)));
  const auto code = json ? count_of(*json, "code") : std::nullopt;
  if (!code || *code > 255) throw_error(ExitCode::io, "{} is no record of an end", path_of(dir));
  return ExitRecord{static_cast<ExitCode>(*code),
                    text_of(*json, "reason").value_or(""),
                    count_of(*json, "step").value_or(0),
                    count_of(*json, "checkpoint"),
                    flag_of(*json, "continue"),
                    flag_of(*json, "requeues"),
                    flag_of(*json, "paused")};
}

void remove_exit_record(const std::string& dir) {
  const std::string path = path_of(dir);
  if (std::remove(path.c_str()) != 0 && errno != ENOENT)
    throw_error(ExitCode::io, "cannot remove {}: {}", path, std::strerror(errno));
}

}  // namespace t3d
