// What a training job has before its state: the input, its data, the locked folders, and who
// watches over the other ranks. It lives until everything else of the job has ended.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/peers/peer_watch.hpp"
#include "io/lock/run_lock.hpp"
#include "io/read_patience.hpp"
#include "run/job_end.hpp"
#include "run/kept_input.hpp"
#include "run/last_words.hpp"
#include "run/life.hpp"
#include "run/run_words.hpp"
#include "run/setup.hpp"
#include "run/stopping.hpp"
#include "run/texts.hpp"

namespace t3d {

class JobStart {
 public:
  /// `warn`: works also before there is a log.
  JobStart(Communicator& world, const RunWords& command,
           const std::function<void(const std::string&)>& warn);
  /// Collective. Throws what ends the job.
  void prepare();
  /// Collective, as `code` is the end of all. What no rank could read for a while may be readable
  /// later: the job is to be started again.
  void look_whether_it_passes(ExitCode code);

  ReadPatience patience;
  LastWords last_words;
  Life life;
  std::unique_ptr<PeerWatch> watch;
  std::unique_ptr<RunLock> lock;  // rank 0's; given back when everything else has ended
  Origins origins;
  AcceptedInput input;
  Config config;
  JobEnd end;
  std::unique_ptr<Stopping> stopping;
  std::vector<std::string> early_notes;  // for the log, which there is not yet
  Texts texts;

 private:
  void begin_watching();
  std::optional<AgreedError> read_texts();
  void check_folders(const std::vector<int>& nodes, const std::string& token);
  void prepare_folder(index_t nodes);

  Communicator& world_;
  const RunWords& command_;
};

}  // namespace t3d
