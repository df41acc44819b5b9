// Plans as text: a subset of TOML, written and read by one description of the fields.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "core/plan.hpp"
#include "core/random.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

constexpr int kVersion = 1;
constexpr const char* kWhole = "whole";
constexpr const char* kHead =
    "# The plan of a run: who sits where, how wide, what is chosen. Written and read by\n"
    "# transformer3d; widths are lists of offsets.\n";

/// "key = value" lines of one table.
using Table = std::map<std::string, std::string>;

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(index_t value) { return fmt::format("{}", value); }
std::string text_of(int value) { return fmt::format("{}", value); }
std::string text_of(const std::string& value) { return '"' + value + '"'; }
template <Worded Choice>
std::string text_of(Choice value) {
  return fmt::format("\"{}\"", word_of(value));
}
template <class Number>
std::string list_of(const Number& numbers) {
  std::string out;
  for (const auto number : numbers) out += (out.empty() ? "" : ", ") + fmt::format("{}", number);
  return "[" + out + "]";
}
std::string text_of(const std::vector<std::string>& strings) {
  std::string out;
  for (const std::string& one : strings) out += (out.empty() ? "\"" : ", \"") + one + '"';
  return "[" + out + "]";
}
std::string text_of(const Cuboid& cuboid) { return list_of(cuboid); }
std::string text_of(const std::vector<int>& list) { return list_of(list); }
std::string text_of(const std::vector<index_t>& list) { return list_of(list); }
/// Offsets, and behind them the unit.
std::string text_of(const Partition& cut) {
  return fmt::format("[{}, {}]", list_of(cut.offsets()), cut.unit());
}
std::string text_of(const std::vector<std::vector<index_t>>& lists) {
  std::string out;
  for (const auto& list : lists) out += (out.empty() ? "" : ", ") + list_of(list);
  return "[" + out + "]";
}
std::string text_of(const std::vector<Partition>& cuts) {
  std::vector<std::vector<index_t>> offsets;
  for (const Partition& cut : cuts)
    offsets.emplace_back(cut.offsets().begin(), cut.offsets().end());
  return text_of(offsets);
}

[[noreturn]] void bad(const std::string& what) { throw_error(ExitCode::io, "{}", what); }

/// Lists of numbers, and lists of such: "[[0, 4], 2]".
class Numbers {
 public:
  explicit Numbers(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) {}
  index_t number() {
    skip();
    index_t value = 0;
    const auto [stop, error] = std::from_chars(at_, end_, value);
    if (error != std::errc()) bad("a number is missing");
    at_ = stop;
    return value;
  }
  std::vector<index_t> list() {
    return items<index_t>([this] { return number(); });
  }
  std::vector<std::vector<index_t>> lists() {
    return items<std::vector<index_t>>([this] { return list(); });
  }
  void take(char letter) {
    if (!next_is(letter)) bad(fmt::format("'{}' is missing", letter));
  }
  void end() {
    skip();
    if (at_ != end_) bad("something follows on the last bracket");
  }

 private:
  template <class Item, class Read>
  std::vector<Item> items(const Read& read) {
    std::vector<Item> all;
    take('[');
    if (next_is(']')) return all;
    do all.push_back(read());
    while (next_is(','));
    take(']');
    return all;
  }
  void skip() {
    while (at_ < end_ && *at_ == ' ') ++at_;
  }
  bool next_is(char letter) {
    skip();
    if (at_ == end_ || *at_ != letter) return false;
    ++at_;
    return true;
  }
  const char *at_, *end_;
};

std::vector<index_t> list_from(const std::string& text) {
  Numbers numbers(text);
  std::vector<index_t> list = numbers.list();
  numbers.end();
  return list;
}

Partition partition_from(const char* name, const std::vector<index_t>& offsets, index_t unit) {
  const bool rising = std::is_sorted(offsets.begin(), offsets.end());
  if (offsets.size() < 2 || offsets.front() != 0 || !rising || unit < 1)
    bad(fmt::format("the offsets of {} do not rise from 0", name));
  return Partition::from_offsets(name, offsets, unit);
}

void read(const std::string& text, bool& out, const char*) {
  if (text != "true" && text != "false") bad("true or false is missing");
  out = text == "true";
}
template <class Number>
requires std::is_arithmetic_v<Number>
void read(const std::string& text, Number& out, const char*) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || stop != text.data() + text.size())
    bad(fmt::format("{} is no number", text));
}
void read(const std::string& text, std::string& out, const char*) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') bad("a string is missing");
  out = text.substr(1, text.size() - 2);
}
template <Worded Choice>
void read(const std::string& text, Choice& out, const char* name) {
  std::string word;
  read(text, word, name);
  const auto choice = choice_of<Choice>(word);
  if (!choice) bad(fmt::format("{} cannot be {}", name, word));
  out = *choice;
}
/// Of strings without quotes or commas.
void read(const std::string& text, std::vector<std::string>& out, const char* name) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') bad("a list is missing");
  out.clear();
  for (std::size_t at = 1; at + 1 < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size() - 1);
    read(text.substr(at, comma - at), out.emplace_back(), name);
    at = comma + 1;
    while (at + 1 < text.size() && text[at] == ' ') ++at;
  }
}
void read(const std::string& text, Cuboid& out, const char*) {
  const std::vector<index_t> numbers = list_from(text);
  if (numbers.size() != out.size()) bad("a cuboid has three extents");
  std::copy(numbers.begin(), numbers.end(), out.begin());
}
void read(const std::string& text, std::vector<int>& out, const char*) {
  out.clear();
  for (const index_t number : list_from(text)) {
    if (!std::in_range<int>(number)) bad(fmt::format("{} is no rank", number));
    out.push_back(static_cast<int>(number));
  }
}
void read(const std::string& text, std::vector<index_t>& out, const char*) {
  out = list_from(text);
}
void read(const std::string& text, Partition& out, const char* name) {
  Numbers numbers(text);
  numbers.take('[');
  const std::vector<index_t> offsets = numbers.list();
  numbers.take(',');
  const index_t unit = numbers.number();
  numbers.take(']');
  numbers.end();
  out = partition_from(name, offsets, unit);
}
void read(const std::string& text, std::vector<std::vector<index_t>>& out, const char*) {
  Numbers numbers(text);
  out = numbers.lists();
  numbers.end();
}
void read(const std::string& text, std::vector<Partition>& out, const char* name) {
  std::vector<std::vector<index_t>> lists;
  read(text, lists, name);
  out.clear();
  for (const auto& offsets : lists) out.push_back(partition_from(name, offsets, 1));
}

/// Calls visit(key, field) for everything that stands above the replicas; P: Plan or const Plan.
template <class P, class Visit>
void visit_plan(P& plan, Visit&& visit) {
  visit("ranks", plan.ranks);
  visit("place", plan.place);
  auto& m = plan.model;
  visit("model.preset", m.preset);
  visit("model.layers", m.layers);
  visit("model.hidden", m.hidden);
  visit("model.heads", m.heads);
  visit("model.kv_heads", m.kv_heads);
  visit("model.ffn", m.ffn);
  visit("model.vocab", m.vocab);
  visit("model.context", m.context);
  visit("model.norm", m.norm);
  visit("model.activation", m.activation);
  visit("model.position", m.position);
  visit("model.rope_base", m.rope.base);
  visit("model.norm_eps", m.norm_eps);
  visit("model.bias", m.bias);
  visit("model.tied_embeddings", m.tied_embeddings);
  visit("model.dropout", m.dropout);
  visit("model.init_std", m.init_std);
  visit("model.head_size", m.head_columns);
  visit("model.qk_norm", m.qk_norm);
  visit("model.attention_bias", m.attention_bias);
  visit("model.rope_scaling", m.rope.scaling);
  visit("model.rope_factor", m.rope.factor);
  visit("model.rope_original_context", m.rope.original_context);
  visit("model.rope_low_freq_factor", m.rope.low_freq_factor);
  visit("model.rope_high_freq_factor", m.rope.high_freq_factor);
  visit("model.rope_beta_fast", m.rope.beta_fast);
  visit("model.rope_beta_slow", m.rope.beta_slow);
  visit("model.rope_attention_factor", m.rope.attention_factor);
  visit("model.freeze", m.freeze);
  visit("lora.rank", m.lora.rank);
  visit("lora.alpha", m.lora.alpha);
  visit("lora.targets", m.lora.targets);
  visit("optimizer", plan.optimizer);
  auto& a = plan.aggregate;
  visit("aggregate.method", a.method);
  visit("aggregate.placement", a.placement);
  visit("aggregate.algorithm", a.algorithm);
  visit("aggregate.per", a.per);
  visit("aggregate.reference_batch", a.reference_batch);
  visit("aggregate.leaves", a.leaves);
  visit("aggregate.leaf", a.leaf);
  visit("aggregate.wire", a.wire);
  visit("aggregate.gain_exponent", a.gain_exponent);
  visit("compute", plan.compute);
  visit("matmul", plan.matmul);
  visit("recompute", plan.recompute);
  visit("reduce_in_fp32", plan.reduce_in_fp32);
  visit("keep_weights", plan.keep_weights);
  visit("keep_inputs", plan.keep_inputs);
  visit("transport", plan.transport);
  visit("gemm_engine", plan.gemm_engine);
  visit("attention_engine", plan.attention_engine);
  visit("tune", plan.tune);
  visit("logits_bytes", plan.logits_bytes);
}

template <class R, class Visit>
void visit_replica(R& replica, Visit&& visit) {
  visit("cuboid", replica.cuboid);
  visit("hidden", replica.hidden);
  visit("groups", replica.groups);
  visit("ffn", replica.ffn);
  visit("vocab", replica.vocab);
  visit("storage", replica.storage);
  visit("attention", replica.attention);
  visit(kWhole, replica.whole);
  visit("leaves", replica.leaves);
  visit("tokens", replica.tokens);
}

[[noreturn]] void bad_line(index_t line, const std::string& what) {
  bad(fmt::format("line {}: {}", line, what));
}

/// The values of a table as they were written.
struct WrittenTable {
  struct Value {
    std::string text;
    index_t line = 0;
  };
  index_t line = 1;  // where it begins
  std::map<std::string, Value> values;
};

template <class T>
void take(WrittenTable& table, const char* key, T& target) {
  const auto found = table.values.find(key);
  if (found == table.values.end())
    bad(fmt::format("{} is missing in the table of line {}", key, table.line));
  try {
    read(found->second.text, target, key);
  } catch (const Error& error) {
    bad_line(found->second.line, error.what());
  }
  table.values.erase(found);
}

/// Keys that plans of earlier versions do not have: what they did then is the default.
bool came_later(std::string_view key) {
  constexpr std::array<std::string_view, 5> names{kWhole, "model.head_size", "model.qk_norm",
                                                  "model.attention_bias", "model.freeze"};
  if (key.starts_with("model.rope_")) return key != "model.rope_base";
  return key.starts_with("lora.") || std::find(names.begin(), names.end(), key) != names.end();
}

/// Fills the fields from the table; every key must be there and no other.
template <class Visitor, class T>
void fill(Visitor&& visitor, T& target, WrittenTable table) {
  visitor(target, [&](const char* key, auto& field) {
    if (!came_later(key) || table.values.contains(key)) take(table, key, field);
  });
  if (table.values.empty()) return;
  const auto& [key, value] = *table.values.begin();
  bad_line(value.line, fmt::format("{} is not known", key));
}

/// The table above all replicas, then one for each [[replica]], repeated `copies` times.
std::vector<WrittenTable> tables_of(const std::string& text) {
  std::vector<WrittenTable> tables(1);
  std::istringstream lines(text);
  index_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    if (line == "[[replica]]") {
      tables.push_back({number, {}});
      continue;
    }
    const auto equals = line.find(" = ");
    if (equals == std::string::npos)
      bad_line(number, fmt::format("\"{}\" is not key = value", printable(line, 100)));
    const std::string key = line.substr(0, equals);
    if (!tables.back()
             .values.emplace(key, WrittenTable::Value{line.substr(equals + 3), number})
             .second)
      bad_line(number, fmt::format("{} is given twice", printable(key, 100)));
  }
  return tables;
}

Plan plan_from(const std::string& text) {
  constexpr index_t kMostReplicas = 1 << 17;  // a kilobyte each
  constexpr index_t kMostLetters = 1 << 28;   // of all copies
  std::vector<WrittenTable> tables = tables_of(text);
  index_t version = 0;
  take(tables.front(), "version", version);
  if (version != kVersion) bad(fmt::format("version {} is not known", version));
  Plan plan;
  fill([](auto& p, auto&& visit) { visit_plan(p, visit); }, plan, tables.front());
  plan.replicas.clear();
  index_t letters = 0;
  for (std::size_t at = 1; at < tables.size(); ++at) {
    index_t copies = 0;
    take(tables[at], "copies", copies);
    const index_t most = std::min<index_t>(plan.ranks, kMostReplicas) - std::ssize(plan.replicas);
    for (const auto& [key, value] : tables[at].values)
      letters += std::ssize(value.text) * std::max<index_t>(copies, 1);
    if (copies < 1 || copies > most || letters > kMostLetters)
      bad_line(tables[at].line, fmt::format("{} copies of a replica", copies));
    ReplicaPlan replica;
    fill([](auto& r, auto&& visit) { visit_replica(r, visit); }, replica, tables[at]);
    plan.replicas.insert(plan.replicas.end(), static_cast<std::size_t>(copies), replica);
  }
  plan.check();
  return plan;
}

}  // namespace

std::string Plan::text() const {
  std::string out = kHead;
  const auto line = [&](const char* key, const auto& field) {
    out += fmt::format("{} = {}\n", key, text_of(field));
  };
  line("version", kVersion);
  visit_plan(*this, line);
  for (std::size_t at = 0; at < replicas.size();) {
    std::size_t end = at + 1;
    while (end < replicas.size() && replicas[end] == replicas[at]) ++end;
    out += "\n[[replica]]\n";
    line("copies", static_cast<index_t>(end - at));
    visit_replica(replicas[at], line);
    at = end;
  }
  return out;
}

std::string Plan::hash() const { return fmt::format("{:016x}", stream_of(text())); }

Plan parse_plan(const std::string& text, const std::string& source) {
  try {
    return plan_from(text);
  } catch (const std::exception& error) {
    throw_error(ExitCode::io, "{} is not a plan: {}", source, error.what());
  }
}

std::vector<std::string> plan_differences(const Plan& from, const Plan& to) {
  std::vector<std::string> lines;
  const auto compare = [&](const std::string& place, const Table& before, const Table& after) {
    for (const auto& [key, value] : after) {
      const auto found = before.find(key);
      const std::string old = found == before.end() ? "-" : found->second;
      if (old != value) lines.push_back(fmt::format("{}{}: {} -> {}", place, key, old, value));
    }
  };
  const auto fields_of = [](const auto& value, auto&& visitor) {
    Table table;
    visitor(value, [&](const char* key, const auto& field) { table[key] = text_of(field); });
    return table;
  };
  const auto of_plan = [](const auto& p, auto&& visit) { visit_plan(p, visit); };
  const auto of_replica = [](const auto& r, auto&& visit) { visit_replica(r, visit); };
  compare("", fields_of(from, of_plan), fields_of(to, of_plan));
  if (from.replicas.size() != to.replicas.size())
    lines.push_back(fmt::format("replicas: {} -> {}", from.replicas.size(), to.replicas.size()));
  const std::size_t both = std::min(from.replicas.size(), to.replicas.size());
  for (std::size_t d = 0; d < both; ++d)
    compare(fmt::format("replica {} ", d), fields_of(from.replicas[d], of_replica),
            fields_of(to.replicas[d], of_replica));
  return lines;
}

}  // namespace t3d
