#include "io/lock/lock_owner.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "device/host_limits.hpp"
#include "device/process_status.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kRecordBytes = 1024;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string process_namespace() {
  std::array<char, 64> name{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", name.data(), name.size() - 1);
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length)) : "";
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool same_processes(const LockOwner& owner, const LockOwner& here) {
  return !owner.boot.empty() && owner.boot == here.boot && owner.processes == here.processes;
}

bool process_has_ended(index_t pid, index_t started) {
  if (pid <= 0) return false;
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  const ProcessStatus now = process_status(pid);
  const bool other = now.started >= 0 && started >= 0 && now.started != started;
  return other || now.state == 'Z' || now.state == 'X';
}

}  // namespace

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

LockOwner this_process(const std::string& run) {
  LockOwner owner;
  owner.host = host_name();
  owner.boot = first_line("/proc/sys/kernel/random/boot_id");
  owner.processes = process_namespace();
  owner.pid = ::getpid();
  owner.started = process_status(owner.pid).started;
  owner.cluster = variable("SLURM_CLUSTER_NAME");
  owner.job = variable("SLURM_JOB_ID");
  owner.restarts = std::atoll(variable("SLURM_RESTART_COUNT").c_str());
  owner.run = run;
  owner.token = random_token();
  return owner;
}

std::string format_owner(const LockOwner& owner) {
  const Json json{{"host", owner.host},
                  {"boot", owner.boot},
                  {"processes", owner.processes},
                  {"pid", owner.pid},
                  {"started", owner.started},
                  {"cluster", owner.cluster},
                  {"job", owner.job},
                  {"restarts", owner.restarts},
                  {"run", owner.run},
                  {"token", owner.token},
                  {"beats", fmt::format("{:012}", owner.beats)}};
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() < kRecordBytes - 1) text.resize(kRecordBytes - 1, ' ');
  return text + "\n";
}

std::optional<LockOwner> parse_owner(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    LockOwner owner;
    owner.host = json.at("host");
    owner.boot = json.at("boot");
    owner.processes = json.at("processes");
    owner.pid = json.at("pid");
    owner.started = json.at("started");
    owner.cluster = json.at("cluster");
    owner.job = json.at("job");
    owner.restarts = json.at("restarts");
    owner.run = json.at("run");
    owner.token = json.at("token");
    owner.beats = std::atoll(json.value("beats", "").c_str());
    // The token becomes a part of a file name.
    const bool plain = owner.token.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!plain || owner.token.empty() || owner.token.size() > 64) return std::nullopt;
    return owner;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string describe(const LockOwner& owner) {
  std::string text = fmt::format("process {} on {}", owner.pid, owner.host);
  if (!owner.job.empty()) text += fmt::format(", Slurm job {}", owner.job);
  if (owner.restarts > 0) text += fmt::format(" (restart {})", owner.restarts);
  if (!owner.run.empty()) text += fmt::format(", run {}", owner.run);
  return text;
}

bool has_ended(const LockOwner& owner, const LockOwner& here) {
  const bool same_job =
      !owner.job.empty() && owner.job == here.job && owner.cluster == here.cluster;
  if (same_job && here.restarts > owner.restarts) return true;
  return same_processes(owner, here) && process_has_ended(owner.pid, owner.started);
}

bool is_alive(const LockOwner& owner, const LockOwner& here) {
  if (!same_processes(owner, here) || owner.pid <= 0 || owner.started < 0) return false;
  const ProcessStatus now = process_status(owner.pid);
  return now.started == owner.started && now.state != 'Z' && now.state != 'X';
}

}  // namespace t3d
