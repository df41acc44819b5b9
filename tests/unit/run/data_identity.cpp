#include "run/data_identity.hpp"

#include "core/error.hpp"
#include "io/hdf5/token_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using t3d::test::contains;
using t3d::test::ScratchFolder;

namespace {

void write(const std::string& path, std::int32_t last) {
  TokenFileWriter writer(path, {});
  for (std::int32_t id = 0; id < 40; ++id) writer.append(&id, 1);
  writer.append(&last, 1);
  writer.finish();
}

/// Of sources "a", "b", ... with these weights.
std::string text_of(const std::vector<std::string>& files,
                    const std::vector<double>& weights = {}) {
  DataConfig data;
  std::vector<MixturePart> parts;
  for (std::size_t n = 0; n < files.size(); ++n) {
    const double weight = weights.empty() ? 1 : weights[n];
    data.sources.push_back({{files[n]}, weight, std::string(1, static_cast<char>('a' + n))});
    parts.push_back({make_token_source({files[n]}), weight, data.sources.back().name});
  }
  return data_text(BatchSource(parts, 0, 8, 1, true), data, 7);
}

}  // namespace

TEST_CASE("the same data has the same hash, and whatever changes it another one") {
  const ScratchFolder folder("identity");
  const std::string one = folder.path() + "/one.h5", two = folder.path() + "/two.h5";
  write(one, 1);
  write(two, 1);
  const std::string both = text_of({one, two});
  CHECK(data_hash(both).size() == 16);
  CHECK(data_change(both, text_of({one, two}), "x").empty());
  for (const std::string& other :
       {text_of({one}), text_of({two, one}), text_of({one, two}, {1, 2})})
    CHECK(data_hash(other) != data_hash(both));
  CHECK_THAT(data_change(text_of({one}), both, "step-4"), contains("not that of step-4") &&
                                                              contains("1 file came, 0 went") &&
                                                              contains("names of sources"));
  CHECK_THAT(data_change(both, text_of({one, two}, {1, 2}), "x"), contains("weights"));
  CHECK(data_change(both, text_of({one, two}, {1, 2}), "x").find("came") == std::string::npos);
}

TEST_CASE("a file of the same name with other contents is refused by name") {
  const ScratchFolder folder("identity_changed");
  const std::string one = folder.path() + "/a file.h5";
  write(one, 1);
  const std::string before = text_of({one});
  write(one, 2);
  try {
    (void)data_change(before, text_of({one}), "runs/x");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), contains(one + " is not the file that runs/x was trained on"));
  }
}

TEST_CASE("a run says that its samples go across the ends of documents, where there are any") {
  const ScratchFolder folder("document_ends");
  const auto text_with = [&](int documents, bool prompts) {
    const std::string path = folder.path() + "/" + std::to_string(documents) + ".h5";
    TokenFileWriter writer(path, {});
    for (int n = 0; n < documents; ++n) {
      const std::vector<std::int32_t> ids(20, n);
      writer.append(ids.data(), 20, !prompts);
      writer.end_document();
    }
    writer.finish();
    return document_ends_text(*make_token_source({path}), 32);
  };
  CHECK(text_with(1, false).empty());
  CHECK_THAT(text_with(3, false), contains("samples of 32 tokens go across the ends of documents "
                                           "(3, of 20 tokens on average)"));
  CHECK_THAT(text_with(3, false), !contains("prompt"));
  CHECK_THAT(text_with(4, true), contains("a completion sees other prompts"));
}
