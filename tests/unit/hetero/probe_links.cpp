// Links and the speeds of all ranks: everybody gets the same, idle ranks too, and the ledger does
// not know of it.
#include "hetero/speed/probe_links.hpp"

#include <cstdlib>
#include <cstring>

#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "train/probe/probe_speeds.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Host memory, but no large pieces of it.
class ShortDevice final : public Device {
 public:
  ~ShortDevice() override { trim(); }
  [[nodiscard]] std::string_view name() const override { return "short"; }
  [[nodiscard]] bool host_addressable() const override { return true; }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<Queue>(); }
  void copy(void* to, const void* from, index_t bytes, Queue&) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

 protected:
  void* system_allocate(index_t bytes) override {
    constexpr index_t kMost = index_t{1} << 20;
    return bytes > kMost ? nullptr : std::aligned_alloc(64, static_cast<std::size_t>(bytes));
  }
  void system_release(void* data, index_t) noexcept override { std::free(data); }
};

GroupLink line(double alpha, double beta, bool between) { return {{alpha, beta}, true, between}; }

}  // namespace

TEST_CASE("links are medians over groups; a kind that no group has takes the other's") {
  GroupLinks a, b, none;
  a[0] = line(1, 10, false);
  a[2] = line(3, 30, false);
  b[1] = line(50, 60, true);
  b[3] = line(2, 20, false);
  Speeds speeds;
  summarise_links(std::vector<GroupLinks>{a, none, b}, speeds);
  CHECK(speeds.inside == LinkSpeed{2, 20});
  CHECK(speeds.between == LinkSpeed{50, 60});
  summarise_links(std::vector<GroupLinks>{a, none}, speeds);
  CHECK(speeds.between == LinkSpeed{2, 20});
  summarise_links(std::vector<GroupLinks>{none}, speeds);
  CHECK(speeds.inside == LinkSpeed{});
  CHECK(speeds.between == LinkSpeed{});
}

TEST_CASE("groups are told apart by the nodes of their ranks") {
  Config config = gpt_input();
  run_local_ranks(4, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    const Mesh mesh(world, MeshShape(1, 2, 2, 1));
    const ProbeMachine means{machine.device(), machine.ops(), machine.queue(), {}};
    const std::vector<int> nodes{0, 0, 1, 1};  // i spans them, j does not
    const GroupLinks links = probe_links(means, mesh, nodes, {0.05}, world);
    if (!links[0].measured || !links[0].between || !links[1].measured || links[1].between ||
        links[2].measured || links[3].measured || links[4].measured)
      throw std::runtime_error("groups are not measured as they lie");
    if (links[0].link.alpha_seconds <= 0 && links[0].link.beta_seconds_per_byte <= 0)
      throw std::runtime_error("a message costs nothing");
  });
}

TEST_CASE("a rank without memory for messages ends all ranks, and nobody waits for it") {
  const Config config = gpt_input();
  Remarks remarks;
  run_local_ranks(3, [&](Communicator& world) {
    world.set_watchdog(5);
    Machine machine(world, test_machine(config));
    ShortDevice small;
    const Mesh mesh(world, MeshShape(1, 3, 1, 1));
    const ProbeMachine means{
        world.rank() == 1 ? small : machine.device(), machine.ops(), machine.queue(), {}};
    const std::vector<int> nodes{0, 0, 0};
    try {
      (void)probe_links(means, mesh, nodes, {0.05}, world);
      remarks.add("no error on a rank");
    } catch (const AgreedError& error) {
      if (error.code() != ExitCode::unavailable ||
          std::string(error.what()).find("memory") == std::string::npos)
        remarks.add(error.what());
    } catch (const Error& error) {
      remarks.add(std::string("on one rank alone: ") + error.what());
    }
    // Where buffers are to be small, there is enough.
    if (!probe_links(means, mesh, nodes, {0.05, index_t{1} << 20}, world)[0].measured)
      remarks.add("small messages are not measured");
  });
  CHECK(remarks.all() == "");
}

TEST_CASE("all ranks learn the same speeds, and the ledger stays") {
  const Config config = gpt_input();
  const std::vector<Plan> plans{plan_of(config, Grid{2, 2, 1, {}, {}, {}}, 1, 5),
                                plan_of_cuboids(config, {{2, 1, 1}, {1, 1, 1}})};
  for (const Plan& plan : plans) {
    std::vector<std::string> texts(static_cast<std::size_t>(plan.ranks));
    Remarks remarks;
    run_local_ranks(plan.ranks, [&](Communicator& world) {
      Machine machine(world, test_machine(config));
      const Formation formation(machine, plan, config.optimizer);
      const Ledger before = world.ledger();
      ProbeBudget budget;
      budget.seconds = 0.1;
      const Speeds speeds = probe_speeds(machine, formation, budget);
      texts[static_cast<std::size_t>(world.rank())] = speeds.text();
      const std::string sent = difference(world.ledger(), before);
      if (!sent.empty()) remarks.add(sent);
      for (const RankSpeed& rank : speeds.ranks)
        if (rank.curve(WorkClass::matmul).empty() || rank.free_bytes <= 0 || rank.node.empty())
          remarks.add("a rank was not measured");
      if (speeds.inside.alpha_seconds <= 0 && speeds.inside.beta_seconds_per_byte <= 0)
        remarks.add("no link was measured");
    });
    CHECK(remarks.all() == "");
    for (const std::string& text : texts) CHECK(text == texts.front());
  }
}
