#include "io/lives/exit_record.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "io/json_fields.hpp"
#include "io/lock/lock_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

std::string path_of(const std::string& dir) { return dir + "/exit.json"; }

/// The lock is, or a later life has ended: what earlier ones left was removed at the start of ours.
/// What cannot be read tells nothing.
bool is_anothers(const std::string& dir, const std::string& token) {
  if (token.empty()) return false;
  try {
    const auto holder = read_lock(dir + "/" + kLockName);
    if (holder && holder->owner) return holder->owner->token != token;
    const auto there = read_exit_record(dir);
    return there && !there->epoch.token.empty() && there->epoch.token != token;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Epoch epoch_of_lock(const std::string& token) {
  const LockOwner self = this_process({});
  return {self.cluster, self.job, self.restarts, token};
}

void write_exit_record(const std::string& dir, const ExitRecord& record, int rank) {
  const Epoch& epoch = record.epoch;
  if (is_anothers(dir, epoch.token))
    throw_error(ExitCode::unavailable, "{} is not written: the folder is another life's by now",
                path_of(dir));
  nlohmann::ordered_json json;
  json["code"] = static_cast<int>(record.code);
  json["reason"] = record.reason;
  json["step"] = record.step;
  json["checkpoint"] = nullptr;
  if (record.checkpoint) json["checkpoint"] = *record.checkpoint;
  json["continue"] = record.goes_on;
  json["requeues"] = record.requeues;
  if (record.undecided) json["requeues"] = nullptr;
  json["paused"] = record.paused;
  json["cluster"] = epoch.cluster;
  json["job"] = epoch.job;
  json["restart"] = epoch.restart;
  json["token"] = epoch.token;
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
                    flag_of(*json, "paused"),
                    json->contains("requeues") && json->at("requeues").is_null(),
                    {text_of(*json, "cluster").value_or(""), text_of(*json, "job").value_or(""),
                     count_of(*json, "restart").value_or(0), text_of(*json, "token").value_or("")}};
}

void remove_exit_record(const std::string& dir) {
  const std::string path = path_of(dir);
  if (std::remove(path.c_str()) != 0 && errno != ENOENT)
    throw_error(ExitCode::io, "cannot remove {}: {}", path, std::strerror(errno));
}

}  // namespace t3d
