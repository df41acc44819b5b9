// A training job from its start to its end.
#pragma once
#include <functional>

#include "comm/communicator.hpp"
#include "run/run_words.hpp"
#include "run/step_predictor.hpp"

namespace t3d {

/// Collective over `world`; returns the exit code. What all ranks know to be wrong is thrown as
/// AgreedError. `predict`: where hetero.cluster names a file. `last_act`: what is to be done when
/// MPI has ended, if anything.
int run_training(Communicator& world, const RunWords& command, const MakeStepPredictor& predict,
                 std::function<void()>& last_act);

}  // namespace t3d
