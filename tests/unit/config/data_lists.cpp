// [[data.source]] and [[data.validation]]: read, written, compared, and refused with their places.
#include "config/data_lists.hpp"

#include "config/config_load.hpp"
#include "config/defaults.hpp"
#include "config/explain.hpp"
#include "support/catch.hpp"

using namespace t3d;
using t3d::test::contains;

namespace {

const std::string kInput = R"(version = 1
[run]
steps = 1
[model]
layers = 1
hidden = 8
heads = 2
context = 8
[batch]
sequences = 1
)";
const std::string kMixture = R"(
[data]
shuffle = false
[[data.source]]
files = "a*.h5"
weight = 0.7
name = "web"
[[data.source]]
files = ["b.h5", "c.h5"]
[[data.validation]]
files = "v.h5"
name = "code"
)";

std::string faults_of(const std::string& data) {
  try {
    (void)parse_config(kInput + data, "in.toml");
  } catch (const ConfigErrors& errors) {
    return errors.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sources and validation sets are read, written and read again") {
  const Config config = parse_config(kInput + kMixture, "in.toml");
  REQUIRE(config.data.sources.size() == 2);
  CHECK(config.data.sources[0].weight == 0.7);
  CHECK(config.data.sources[1].weight == 1);
  CHECK(config.data.sources[1].files == std::vector<std::string>{"b.h5", "c.h5"});
  CHECK(source_name(config.data, 0) == "web");
  CHECK(source_name(config.data, 1) == "2");
  CHECK(train_files(config.data) == std::vector<std::string>{"a*.h5", "b.h5", "c.h5"});
  REQUIRE(config.data.validations.size() == 1);
  CHECK(config.data.validations[0].name == "code");
  CHECK(!config.data.shuffle);
  const Config again = parse_config(resolved_text(config, {}), "resolved.toml");
  CHECK(config_differences(config, again).empty());
  CHECK(again.data.sources.size() == 2);

  Config other = config;
  other.data.sources[0].weight = 0.5;
  other.data.validations.clear();
  const auto lines = config_differences(config, other);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "[[data.source]] 1: files = [\"a*.h5\"], weight = 0.7, name = \"web\" -> "
        "files = [\"a*.h5\"], weight = 0.5, name = \"web\"");
  CHECK_THAT(lines[1], contains("[[data.validation]] 1: ") && contains("-> none"));
  CHECK_THAT(explain("data.source"), contains("[[data.source]]  A mixture") && contains("weight"));
}

TEST_CASE("what is wrong with a source or a set is said with its line") {
  CHECK_THAT(faults_of(""), contains("in.toml: data.train is missing"));
  CHECK_THAT(faults_of("[data]\ntrain = 'x'\n[[data.source]]\nfiles = 'y'\n"),
             contains("in.toml:12:1: data.train and [[data.source]] exclude each other"));
  CHECK_THAT(faults_of("[[data.source]]\nweight = 2\n"),
             contains("in.toml:11:1: this [[data.source]] has no files"));
  CHECK_THAT(faults_of("[[data.source]]\nfiles = 'y'\nweight = 0\n"), contains("in.toml:13:1: "));
  CHECK_THAT(faults_of("[[data.source]]\nfile = 'y'\n"),
             contains("did you mean data.source.files?"));
  CHECK_THAT(faults_of("[[data.source]]\nfiles = 'y'\n[[data.source]]\nfiles = 'z'\nname = '1'\n"),
             contains("in.toml:13:1: two [[data.source]] have the name \"1\""));
  CHECK_THAT(faults_of("[[data.validation]]\nfiles = 'y'\n"),
             contains("this [[data.validation]] has no name"));
  CHECK_THAT(faults_of("[[data.sources]]\nfiles = 'y'\n"), contains("did you mean data.source?"));
  CHECK_THAT(faults_of("[data.source]\nfiles = 'y'\n"), contains("in.toml:1"));
  CHECK_THAT(faults_of("[eval]\nevery_steps = 1\n" + kMixture), !contains("eval.every_steps"));
}
