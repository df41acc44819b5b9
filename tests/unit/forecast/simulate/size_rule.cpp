// The rule that decides about a job's size: what always holds, and the plain cases.
#include "forecast/simulate/size_rule.hpp"

#include <algorithm>

#include "forecast/simulate/random_stream.hpp"
#include "support/catch.hpp"
#include "unit/forecast/simulate/job_rig.hpp"

namespace t3d::test {
namespace {

struct Scene {
  std::vector<JobSize> sizes;
  std::vector<index_t> here;
  SizeQuestion question;
};

Scene random_scene(RandomStream& random) {
  const auto below = [&](double most) { return random.uniform() * most; };
  Scene scene;
  const auto classes = static_cast<std::size_t>(1 + below(3));
  const int sizes = 1 + int(below(5));
  for (int size = 0; size < sizes; ++size) {
    JobSize one{"", std::vector<index_t>(classes), 0.5 + below(5), 64};
    for (index_t& nodes : one.nodes) nodes = index_t(below(9));
    scene.sizes.push_back(one);
  }
  std::sort(scene.sizes.begin(), scene.sizes.end(), [](const JobSize& a, const JobSize& b) {
    return a.samples_per_second() < b.samples_per_second();
  });
  for (std::size_t kind = 0; kind < classes; ++kind) scene.here.push_back(index_t(below(10)));
  SizeQuestion& q = scene.question;
  q.current = int(below(double(sizes) + 0.5)) - (random.uniform() < 0.1 ? 1 : 0);
  q.current = std::min(q.current, sizes - 1);
  q.samples_left = 1 + below(1e6);
  q.sizing = static_cast<Sizing>(int(below(3)));
  q.losses_per_hour = random.uniform() < 0.3 ? 0 : below(100);
  q.next_return_seconds = random.uniform() < 0.3 ? kNoTime : below(1000);
  q.reshape_seconds = below(60);
  q.same_size_seconds = below(20);
  q.requeue_seconds = random.uniform() < 0.5 ? kNoTime : below(5000);
  q.left_seconds = random.uniform() < 0.5 ? kNoTime : below(90000);
  q.reserve_seconds = below(100);
  q.warning_seconds = random.uniform() < 0.7 ? kNoTime : below(60);
  q.save_seconds = below(60);
  q.copies = random.uniform() < 0.5;
  q.unsaved_seconds = below(100);
  q.since_checkpoint_seconds = below(100);
  q.interval_seconds = below(400);
  return scene;
}

bool possible(const Scene& scene, int size) {
  return size >= 0 && is_possible(scene.sizes[static_cast<std::size_t>(size)], scene.here);
}

/// A question that is sound: a job that is not interrupted runs on nodes that are here.
Scene sound_scene(RandomStream& random) {
  Scene scene = random_scene(random);
  SizeQuestion& q = scene.question;
  q.interrupted = random.uniform() < 0.5 || !possible(scene, q.current);
  return scene;
}

SizeDecision decide(Scene& scene) {
  scene.question.sizes = scene.sizes;
  scene.question.here = scene.here;
  return decide_size(scene.question);
}

TEST_CASE("whatever is known, the decision can be carried out") {
  RandomStream random(3, "scenes", 0);
  std::array<int, 7> seen{};
  for (int round = 0; round < 20000; ++round) {
    Scene scene = sound_scene(random);
    const SizeQuestion& q = scene.question;
    const SizeDecision decision = decide(scene);
    const SizeAction action = decision.action;
    ++seen[static_cast<std::size_t>(action)];
    CHECK(std::string_view(decision.reason) != "");
    const bool changes = action == SizeAction::grow || action == SizeAction::shrink ||
                         action == SizeAction::use_spare;
    if (changes) CHECK(possible(scene, decision.size));
    if (action == SizeAction::stop) continue;
    const bool of_running = action == SizeAction::go_on || action == SizeAction::checkpoint;
    const bool of_interrupted = action == SizeAction::wait || action == SizeAction::shrink ||
                                action == SizeAction::use_spare;
    CHECK_FALSE((q.interrupted ? of_running : of_interrupted));
    if (action == SizeAction::use_spare) CHECK(decision.size == q.current);
    if (action == SizeAction::shrink) CHECK_FALSE(possible(scene, q.current));
    if (action == SizeAction::wait) CHECK(decision.look_again_seconds > 0);
  }
  for (const int count : seen) CHECK(count > 20);  // every action
}

TEST_CASE("a job grows only when that trains more, and not back and forth") {
  RandomStream random(4, "scenes", 0);
  int grown = 0;
  for (int round = 0; round < 20000; ++round) {
    Scene scene = sound_scene(random);
    SizeQuestion& q = scene.question;
    const int before = q.current;
    const bool interrupted = q.interrupted;
    const SizeDecision decision = decide(scene);
    if (decision.action == SizeAction::grow && !interrupted && q.sizing != Sizing::shrink) {
      ++grown;
      const double fast = scene.sizes[std::size_t(decision.size)].samples_per_second();
      const double slow = scene.sizes[std::size_t(before)].samples_per_second();
      double seconds = std::min(q.samples_left / fast, q.left_seconds - q.reserve_seconds);
      if (q.losses_per_hour > 0) seconds = std::min(seconds, 3600 / q.losses_per_hour);
      CHECK(fast * (seconds - q.reshape_seconds) > slow * seconds);
    }
    const bool changes = decision.action == SizeAction::grow ||
                         decision.action == SizeAction::shrink ||
                         decision.action == SizeAction::use_spare;
    if (!changes) continue;
    // Asked again at once, with nothing new, it stays.
    q.current = decision.size;
    q.interrupted = false;
    q.warning_seconds = q.interval_seconds = kNoTime;
    const SizeDecision again = decide(scene);
    const bool rest = again.action == SizeAction::go_on || again.action == SizeAction::stop;
    if (decision.action != SizeAction::use_spare) CHECK(rest);
    if (again.action == SizeAction::grow) CHECK(again.size > decision.size);
  }
  CHECK(grown > 100);
}

TEST_CASE("plain cases") {
  const SimulatedJob job = small_job();
  std::vector<index_t> here{8};
  SizeQuestion q;
  q.sizes = job.sizes;
  q.here = here;
  q.samples_left = 1e6;
  q.reshape_seconds = 10;
  q.same_size_seconds = 5;

  q.interrupted = true;
  CHECK(decide_size(q).action == SizeAction::grow);  // begins
  CHECK(decide_size(q).size == 2);
  q.current = 2;
  CHECK(decide_size(q).action == SizeAction::use_spare);

  here[0] = 7;
  q.next_return_seconds = 3;  // sooner than a reshape would be done
  CHECK(decide_size(q).action == SizeAction::wait);
  q.next_return_seconds = 600;
  CHECK(decide_size(q).action == SizeAction::shrink);
  CHECK(decide_size(q).size == 1);
  q.sizing = Sizing::wait;
  CHECK(decide_size(q).action == SizeAction::wait);
  q.next_return_seconds = kNoTime;
  CHECK(decide_size(q).action == SizeAction::shrink);  // nobody would come
  here[0] = 3;
  CHECK(decide_size(q).action == SizeAction::wait);
  q.requeue_seconds = 600;
  CHECK(decide_size(q).action == SizeAction::stop);

  here[0] = 8;
  q.sizing = Sizing::rule;
  q.interrupted = false;
  q.current = 1;
  CHECK(decide_size(q).action == SizeAction::grow);
  q.losses_per_hour = 100;  // 36 s: 26 of them at 8/6 of the speed
  CHECK(decide_size(q).action == SizeAction::go_on);
  q.losses_per_hour = 1;
  q.current = 0;
  here[0] = 6;
  q.next_return_seconds = 5;
  CHECK(decide_size(q).action == SizeAction::go_on);  // two reshapes for one
  CHECK(decide_size(q).look_again_seconds == 5);
  q.next_return_seconds = 500;
  CHECK(decide_size(q).action == SizeAction::grow);

  q.unsaved_seconds = 60;
  q.warning_seconds = 30;
  q.save_seconds = 20;
  CHECK(decide_size(q).action == SizeAction::checkpoint);
  q.save_seconds = 40;
  CHECK(decide_size(q).action == SizeAction::grow);  // too late to save
  q.left_seconds = 60;
  q.reserve_seconds = 70;
  CHECK(decide_size(q).action == SizeAction::stop);
}

}  // namespace
}  // namespace t3d::test
