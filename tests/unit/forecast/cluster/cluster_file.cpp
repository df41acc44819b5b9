// cluster.toml: what is written is read back bit for bit, and what does not fit is told all at once
// with its places.
#include "forecast/cluster/cluster_file.hpp"

#include <cmath>

#include "config/config_errors.hpp"
#include "core/random.hpp"
#include "forecast/cluster/operator_terms.hpp"
#include "forecast/cluster/sample_spread.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

/// Numbers whose digits do not end, over many magnitudes.
class Numbers {
 public:
  double next() {
    const double u = random_uniform({7, 1}, at_++);
    return std::exp(60 * (u - 0.5)) * (1 + random_uniform({7, 2}, at_));
  }

 private:
  index_t at_ = 0;
};

Cluster example() {
  Numbers x;
  Cluster cluster;
  cluster.name = "a \"name\" with \\";
  for (const char* name : {"old", "new"}) {
    NodeClass one;
    one.name = name;
    one.nodes = 12;
    one.memory_bytes = (index_t{1} << 57) + 1;
    one.asks_memory = AsksMemory::no;
    one.price_per_node_hour = x.next();
    one.currency = "EUR";
    one.hazard_shape = 0.1 + 0.2;
    one.hazard_scale_hours = 1e6 / 7;
    one.features = {"ib", "avx512"};
    one.launch_seconds = 1e-7 / 3;
    one.jitter = 0.1 / 3;
    one.jitter_exponent = 0.1 * 3;
    one.calibration = {Calibrated::measured, "2026-03-01T12:00:00Z", "0.1"};
    for (const OperatorKind kind : {OperatorKind::matmul, OperatorKind::norm}) {
      OperatorTable table{kind, ComputeType::bf16, {}, {}};
      const TableForm form = form_of(kind);
      for (std::size_t at = 0; at < form.terms.size(); ++at) {
        table.fit.terms.push_back(x.next());
        table.fit.errors.push_back(x.next());
      }
      table.samples.push_back({{}, x.next() * 1e-3, x.next()});
      for (std::size_t at = 0; at < form.columns.size(); ++at)
        table.samples.back().shape[at] = at < 3 ? 1000.0 + static_cast<double>(at) : 1;
      table.unreliable = kind == OperatorKind::norm;
      one.operators.push_back(table);
    }
    one.factors.compute = {1.0 + x.next() * 1e-14, 1.0 / 7};
    one.factors.steps = 20;
    one.factors.time = "2026-03-02T12:00:00Z";
    one.factors.runs = {"gpt-66f1", "gpt-0000"};
    cluster.classes.push_back(one);
    Level level;
    level.name = "node";
    level.node_class = name;
    level.nodes = 1;
    level.alpha_seconds = x.next();
    level.beta_together_seconds_per_byte = x.next();
    level.collectives.push_back({Verb::reduce_scatter,
                                 {FitForm::max, {1e-6 / 3, 0, 1e-9 / 7, 0}, {}},
                                 {{{3, 4096, 2}, 1e-5 / 3, 1e-7 / 3}},
                                 true});
    cluster.levels.push_back(level);
  }
  cluster.storage = {"/scratch",
                     {{1, 1e9 / 3, 7.5}, {4, 2e9 / 3, 0}},
                     {{1, 1e9 / 7, 0}},
                     1e-3 / 7,
                     0.0,
                     {Calibrated::measured, "2026-03-01T12:00:00Z", "0.1"}};
  cluster.startup.starts = {{2, 1.0 / 3, 0.1}, {64, 2.0 / 3, 0.1}};
  cluster.scheduler = {"slurm",
                       121,
                       true,
                       {{"long", {"old", "new"}, 86400, 30, 8, true, true, {0, 1.0 / 3, 2, 0.25}}}};
  return cluster;
}

std::string faults_of(const std::string& text) {
  try {
    (void)parse_cluster(text, "c.toml");
  } catch (const ConfigErrors& errors) {
    CHECK(errors.code() == ExitCode::config);
    return errors.what();
  }
  return "";
}

const std::string kClass = "[[class]]\nname = \"a\"\nnodes = 2\n";

}  // namespace

TEST_CASE("a cluster is read back bit for bit") {
  const Cluster cluster = example();
  const std::string text = cluster_text(cluster);
  INFO(text);
  const Cluster again = parse_cluster(text, "c.toml");
  CHECK(again == cluster);
  CHECK(cluster_text(again) == text);
}

TEST_CASE("of two measurements of a shape the one that spreads less counts") {
  const std::vector<Sample> first{{{1}, 2, 1}, {{2}, 4, 0.1}, {{3}, 8, 8}};
  const std::vector<Sample> second{{{2}, 5, 1}, {{1}, 3, 0.3}};
  CHECK(spreads_widely(first));
  const std::vector<Sample> better = better_samples(first, second);
  CHECK(better == std::vector<Sample>{{{1}, 3, 0.3}, {{2}, 4, 0.1}, {{3}, 8, 8}});
  CHECK_FALSE(spreads_widely(better));
}

TEST_CASE("what a person writes is enough") {
  const Cluster cluster = parse_cluster(
      kClass +
          "[[operator]]\nclass = \"a\"\nkind = \"matmul\"\nterms = [0, 1e-12, 0, 0, 0, 0, 0, 0]\n",
      "");
  REQUIRE(cluster.classes.size() == 1);
  CHECK(cluster.classes.front().operators.front().fit.terms.at(1) == 1e-12);
  CHECK(cluster.classes.front().calibration.state == Calibrated::no);
  CHECK(cluster.classes.front().asks_memory == AsksMemory::unknown);
  CHECK(cluster_text(cluster).find("asks_memory") == std::string::npos);
}

TEST_CASE("a measurement does not forget that memory is not asked for") {
  const Cluster known = parse_cluster(kClass + "asks_memory = \"no\"\n", "");
  const Cluster measured = parse_cluster(kClass + "calibrated = \"measured\"\n", "");
  CHECK(joined(known, measured).classes.front().asks_memory == AsksMemory::no);
}

TEST_CASE("all faults of a cluster file are told at once") {
  const std::string faults = faults_of(R"(version = 1
[storage]
writes = [[4, 1e9, 0], [2, 1e9, 0]]
[scheduller]
[[class]]
name = "a"
nodes = 2
price_per_node_hour = -1.0
hazard_shape = inf
prize = 3
[[class]]
name = "b"
[[class]]
nodes = 1
[[class]]
name = "c"
nodes = 1
[[level]]
name = "node"
class = "cc"
alpha_seconds = nan
[[level]]
name = "leaf"
class = "cc"
[[operator]]
class = "c"
kind = "matmull"
[[operator]]
class = "c"
kind = "norm"
[[operator]]
class = "c"
kind = "norm"
terms = [1, 2, 3]
[[operator]]
class = "c"
kind = "norm"
samples = [[1024, 1e-6, 0], [0, 1e-6, 0]]
[[operator]]
class = "c"
kind = "matmul"
samples = [[8, 8, 8, 2, 0, 1e-6, 0]]
[[collective]]
level = "core"
verb = "all_gather"
terms = [1e-6, 1e-9, 0, 0]
)");
  for (const char* fault :
       {"c.toml:3:1: storage.writes: row 2 does not fit",
        "c.toml:4:1: there is no [scheduller]; did you mean [scheduler]?",
        "c.toml:8:1: class.price_per_node_hour cannot be -1; allowed: 0 <= x <= 1e12",
        "c.toml:9:1: class.hazard_shape cannot be inf; write a finite number",
        "c.toml:10:1: there is no key class.prize; docs",
        "c.toml:11:1: class b has no nodes; write nodes = 1 or more, or remove the class",
        "c.toml:13:1: this [[class]] has no name", "alpha_seconds cannot be nan",
        "there is no class \"cc\"; did you mean \"c\"?", "operator.kind cannot be \"matmull\"",
        "did you mean \"matmul\"?", "there are neither terms nor samples; write one of them",
        "operator.terms has 3 numbers; write 2: call, byte",
        "operator.samples: row 2 does not fit; rows are [bytes, seconds > 0, standard error]",
        "operator.samples: row 1 does not fit; rows are [m, n, k, transpose_a, transpose_b",
        "there is no level \"core\" of class \"\"; write its [[level]]"}) {
    INFO(faults << "\nexpected: " << fault);
    CHECK(faults.find(fault) != std::string::npos);
  }
}

TEST_CASE("a cluster without classes, twice the same, of another version") {
  CHECK(faults_of("").find("there is no [[class]]") != std::string::npos);
  CHECK(faults_of("version = 2\n" + kClass).find("version cannot be the integer 2") !=
        std::string::npos);
  CHECK(faults_of(kClass + kClass).find("two [[class]] have the name \"a\"") != std::string::npos);
  CHECK(
      faults_of(kClass + "[[partition]]\nname = \"p\"\ntime_limit_seconds = 30\n")
          .find("partition.time_limit_seconds cannot be 30; write 0 (none), or from 60 to 1e+09") !=
      std::string::npos);
  CHECK(faults_of(kClass + "return_hours = 1e9\n").find("class.return_hours cannot be 1e+09") !=
        std::string::npos);
  CHECK(faults_of("[class]\nname = \"a\"\n").find("[class] is a list") != std::string::npos);
  CHECK(faults_of("class = 3\n" + kClass).find("c.toml:") != std::string::npos);
}

TEST_CASE("a file that was cut is refused wherever it was cut, one without a mark is not") {
  const std::string text = cluster_text(example());
  std::vector<std::string> notes;
  (void)parse_cluster(text, "c.toml", &notes);
  CHECK(notes.empty());
  const std::size_t first_class = text.find("[[class]]"), end = text.rfind("[end]");
  for (std::size_t at = text.find('\n', first_class); at < end; at = text.find('\n', at + 1))
    CHECK(faults_of(text.substr(0, at + 1)).find("the file was cut: [end], its last line") !=
          std::string::npos);
  CHECK(faults_of(text.substr(0, end - 20)).find("the file was cut") != std::string::npos);
  (void)parse_cluster(kClass, "c.toml", &notes);
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().find("c.toml has no mark at its end") == 0);
  CHECK(faults_of("has_end = 3\n" + kClass).find("has_end cannot be anything but true") !=
        std::string::npos);
  CHECK(faults_of(kClass + "[end]\nx = 1\n").find("there is no key end.x") != std::string::npos);
}

TEST_CASE("factors of runs have a class, steps, and a range") {
  const std::string factor = "[[factor]]\nclass = \"a\"\nsteps = 3\ncompute = 1.5\n";
  CHECK(parse_cluster(kClass + factor, "c.toml").classes[0].factors.compute.value == 1.5);
  CHECK(faults_of(kClass + factor + factor).find("a second [[factor]] of this class") !=
        std::string::npos);
  CHECK(faults_of(kClass + "[[factor]]\nclass = \"b\"\nsteps = 3\n").find("no class \"b\"") !=
        std::string::npos);
  CHECK(faults_of(kClass + "[[factor]]\nclass = \"a\"\nsteps = 3\nbetween = 0\n")
            .find("factor.between cannot be 0") != std::string::npos);
  CHECK(faults_of(kClass + "[[factor]]\nclass = \"a\"\n").find("write steps = 1 or more") !=
        std::string::npos);
}

TEST_CASE("a newer measurement of a class wins, the others stay") {
  Cluster known = example();
  known.classes[0].price_per_node_hour = 3;
  Cluster more;
  NodeClass measured = known.classes[0];
  measured.price_per_node_hour = 0;
  measured.nodes = 2;
  measured.hazard_scale_hours = 0;
  measured.operators[0].samples[0].seconds = 42;
  more.classes = {measured};
  more.startup.starts = {{8, 0.5, 0}, {64, 0.75, 0}};
  const Cluster all = joined(known, more);
  REQUIRE(all.classes.size() == 2);
  CHECK(all.classes[0].operators[0].samples[0].seconds == 42);
  CHECK(all.classes[0].price_per_node_hour == 3);
  CHECK(all.classes[0].nodes == 12);
  CHECK(all.classes[0].hazard_scale_hours == known.classes[0].hazard_scale_hours);
  CHECK(all.classes[1] == known.classes[1]);
  CHECK(all.levels == known.levels);
  CHECK(all.storage == known.storage);
  CHECK(all.startup.starts ==
        std::vector<StartTime>{{2, 1.0 / 3, 0.1}, {8, 0.5, 0}, {64, 0.75, 0}});
  // A file without rates, as --from-slurm makes it, does not take known ones away.
  Cluster bare;
  bare.classes = {NodeClass{}};
  bare.classes[0].name = "old";
  bare.classes[0].nodes = 20;
  CHECK(joined(known, bare).classes[0].operators == known.classes[0].operators);
  CHECK(joined(known, bare).classes[0].calibration == known.classes[0].calibration);
  // What people wrote stays, and they are told; a price stays in its currency.
  bare.classes[0].price_per_node_hour = 70;
  bare.classes[0].currency = "billing units";
  bare.scheduler = {"slurm", 0, false, {{"p", {"old"}, 100, 5, 50, false, false, {}}}};
  known.scheduler = {"slurm", 9, false, {{"p", {}, 60, 0, 6, false, false, {1, 0, 0, 0}}}};
  const Cluster told = joined(known, bare);
  CHECK(told.classes[0].nodes == 12);
  CHECK(told.classes[0].price_per_node_hour == 3);
  CHECK(told.classes[0].currency == known.classes[0].currency);
  const SchedulerPartition& limits = told.scheduler.partitions[0];
  CHECK((limits.time_limit_seconds == 60 && limits.most_nodes == 6 && limits.billing.node == 1));
  CHECK((limits.grace_seconds == 5 && limits.classes == std::vector<std::string>{"old"}));
  CHECK(told.scheduler.requeue_delay_seconds == 9);
  CHECK(kept_notes(known, bare).size() == 2);
  // Nor does it say of which ranks those are: Slurm's tables know no ranks.
  NodeClass& own = known.classes[0];
  own.ranks_per_node = 4;
  own.cores_per_rank = 16;
  own.memory_bytes = 1000;
  bare.classes[0].ranks_per_node = 1;
  bare.classes[0].cores_per_rank = 64;
  bare.classes[0].memory_bytes = 4000;
  CHECK(joined(known, bare).classes[0].ranks_per_node == 4);
  CHECK(joined(known, bare).classes[0].cores_per_rank == 16);
  CHECK(joined(known, bare).classes[0].memory_bytes == 1000);
  own.operators.clear();  // nothing is known yet
  CHECK(joined(known, bare).classes[0].cores_per_rank == 64);
}

TEST_CASE("formats that were not measured again stay where ranks are as before") {
  Cluster known, more;
  NodeClass one;
  one.name = "c";
  one.ranks_per_node = 2;
  one.calibration.state = Calibrated::measured;
  one.operators = {{OperatorKind::norm, ComputeType::fp32, {FitForm::sum, {1, 2}, {}}, {}},
                   {OperatorKind::norm, ComputeType::bf16, {FitForm::sum, {3, 4}, {}}, {}}};
  known.classes = {one};
  one.operators = {{OperatorKind::norm, ComputeType::bf16, {FitForm::sum, {5, 6}, {}}, {}}};
  more.classes = {one};
  const std::vector<OperatorTable> all = joined(known, more).classes[0].operators;
  REQUIRE(all.size() == 2);
  CHECK(all[0] == one.operators[0]);
  CHECK(all[1] == known.classes[0].operators[0]);
  more.classes[0].ranks_per_node = 4;  // more ranks share the node's memory now
  CHECK(joined(known, more).classes[0].operators == one.operators);
}
