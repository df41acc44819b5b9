// The nodes that a job has, as groups of equal ones: of one class, come at about the same time.
#pragma once
#include <span>
#include <vector>

#include "forecast/simulate/simulated_job.hpp"

namespace t3d {

class NodesHere {
 public:
  explicit NodesHere(const std::vector<SimulatedClass>& classes);

  void clear();
  void come(std::size_t kind, index_t nodes, double born_seconds);
  /// They are here.
  void go(std::size_t kind, index_t nodes, double born_seconds);

  [[nodiscard]] const std::vector<index_t>& counts() const { return counts_; }
  [[nodiscard]] index_t count() const { return count_; }
  [[nodiscard]] double price_per_hour() const { return price_; }
  /// Expected losses per hour of one node of a class at the ages that they have; 0 where none is.
  /// Groups whose ages differ by less than 5 % are taken together, and the answer stays for 30 s
  /// unless one node in 50 has changed: it is asked for at every event.
  [[nodiscard]] double losses_per_node_hour(std::size_t kind, double now_seconds);

 private:
  struct Group {
    double born_seconds = 0;  // of the youngest in it
    index_t nodes = 0;
  };
  struct Rate {
    double seconds = -1e9, per_hour = 0;
    index_t changes = 0;
  };
  void merge(std::size_t kind, double now_seconds);

  const std::vector<SimulatedClass>& classes_;
  std::vector<std::vector<Group>> groups_;  // by class, ascending by birth
  std::vector<index_t> counts_;
  std::vector<Rate> rates_;  // the last answers
  index_t count_ = 0;
  double price_ = 0;
};

/// Which copies are gone since all were made anew. Nodes hold the state in groups of `copies`;
/// state is lost when all nodes of a group are. Keeps the number of groups by members lost, and
/// draws which group a loss meets: without a number per node. Until all are made anew, nodes that
/// came since count as those they replaced.
class CopyGroups {
 public:
  /// All whole.
  void begin(index_t nodes, int copies);
  /// One more node is lost; `uniform` in (0, 1). True when a whole group is gone.
  bool lose(double uniform);

 private:
  std::vector<index_t> groups_;  // by members lost
  int copies_ = 1;
  index_t left_ = 0;  // nodes
};

}  // namespace t3d
