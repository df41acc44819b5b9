#include "run/data_identity.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "config/data_lists.hpp"
#include "core/commas.hpp"
#include "core/error.hpp"
#include "core/random.hpp"

namespace t3d {
namespace {

constexpr std::size_t kMostLines = 1000;
constexpr std::string_view kHash = "hash ";

/// What a data text says of its files, by path, and everything else.
struct Listed {
  std::map<std::string, std::string> files;  // "123 bytes, 45 tokens, checksum 0123abcd"
  std::vector<std::string> sources;
};

Listed listed(const std::string& text) {
  Listed all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kHash)) continue;
    if (line.starts_with("source ")) {
      all.sources.push_back(line);
      continue;
    }
    std::istringstream words(line);
    std::string bytes, tokens, checksum, path;
    words >> bytes >> tokens >> checksum;
    std::getline(words >> std::ws, path);
    all.files[path] = fmt::format("{} bytes, {} tokens, checksum {}", bytes, tokens, checksum);
  }
  return all;
}

}  // namespace

std::string data_text(const BatchSource& train, const DataConfig& data,
                      std::uint64_t tokenizer_hash) {
  std::string all, kept;
  std::size_t lines = 0;
  const auto add = [&](const std::string& line) {
    all += line;
    if (++lines <= kMostLines) kept += line;
  };
  for (std::size_t n = 0; n < train.parts().size(); ++n) {
    const bool mixture = !data.sources.empty();
    add(fmt::format("source {} {}\n", mixture ? data.sources[n].weight : 1.0,
                    mixture ? source_name(data, n) : "data.train"));
    for (const CorpusFile& file : train.parts()[n].tokens->files())
      add(fmt::format("{} {} {:08x} {}\n", file.bytes, file.tokens, file.checksum, file.path));
  }
  const std::uint64_t hash = stream_of(all + fmt::format("tokenizer {:x}", tokenizer_hash));
  return fmt::format("{}{:016x}\n{}", kHash, hash, kept);
}

std::string document_ends_text(const TokenSource& train, index_t context) {
  const index_t documents = train.documents();
  if (documents < 2) return {};
  std::string text = fmt::format(
      "samples of {} tokens go across the ends of documents ({}, of {} tokens on average): a "
      "token sees those of the documents before its own, too",
      context, documents,
      readable(static_cast<double>(train.size()) / static_cast<double>(documents), 4));
  if (train.partial_loss())
    text +=
        "; so a completion sees other prompts and completions, and one at the begin of a sample "
        "may lack its prompt";
  return text;
}

std::string data_hash(const std::string& data_text) {
  return data_text.starts_with(kHash) ? data_text.substr(kHash.size(), 16) : "";
}

std::string data_change(const std::string& before, const std::string& now,
                        const std::string& where) {
  if (data_hash(before) == data_hash(now)) return {};
  const Listed then = listed(before), here = listed(now);
  std::size_t added = 0;
  for (const auto& [path, contents] : here.files) {
    const auto known = then.files.find(path);
    if (known == then.files.end()) ++added;
    if (known == then.files.end() || known->second == contents) continue;
    throw_error(ExitCode::config,
                "{} is not the file that {} was trained on: it has {}, and had {}; give other data "
                "another name, or start from the beginning with -r never",
                path, where, contents, known->second);
  }
  const std::size_t gone = then.files.size() + added - here.files.size();
  std::string text = fmt::format("the data is not that of {} (hash {}, now {})", where,
                                 data_hash(before), data_hash(now));
  if (added > 0 || gone > 0)
    text += fmt::format(": {} file{} came, {} went", added, added == 1 ? "" : "s", gone);
  if (then.sources != here.sources) text += ", and the weights or names of sources are others";
  return text + "; samples are counted on from there";
}

}  // namespace t3d
