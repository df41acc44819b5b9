// What a rank is busy with while others wait for it: a file that does not answer, for example.
// PeerWatch carries it to the other ranks. Their waits accept it as long as one for files may take,
// and name it when they end. For all ranks that live in this process.
#pragma once
#include <string>

#include "core/types.hpp"

namespace t3d {

/// While it lives, this rank is busy with `what` ("writing run/log.jsonl"). They may nest, in any
/// thread. Costs nothing to speak of: the others hear of it when it has lasted for a while.
class BusyScope {
 public:
  explicit BusyScope(const std::string& what);
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;
  ~BusyScope();

 private:
  index_t number_;
};

/// What this process has been busy with for so long: of several, the first. "" = nothing.
[[nodiscard]] std::string own_work(double longer_than_seconds);
/// Another rank has said what it is busy with; "" = with nothing any more.
void hear_work(int rank, const std::string& what);
/// Some other rank is busy. Cheap.
[[nodiscard]] bool others_are_busy();
/// "rank 0 has been busy with writing run/log.jsonl for 12 s"; "" where nobody is.
[[nodiscard]] std::string work_of_others();

/// How long a wait may take while others are busy; 0 = as long as they are.
void set_busy_limit(double seconds);
[[nodiscard]] double busy_limit();

}  // namespace t3d
