// What the program can be asked to do, one function per command. All are collective over `world`
// and return the exit code; what all ranks know to be wrong is thrown as AgreedError.
#pragma once
#include "app/cli.hpp"
#include "comm/communicator.hpp"

namespace t3d {

int run_training(Communicator& world, const CommandLine& command);
int run_dry(Communicator& world, const CommandLine& command);
int run_evaluation(Communicator& world, const CommandLine& command);
int run_generation(Communicator& world, const CommandLine& command);
int run_tokenize(Communicator& world, const CommandLine& command);
int run_probe(Communicator& world, const CommandLine& command);
int run_inspect(Communicator& world, const CommandLine& command);
int run_status(Communicator& world, const CommandLine& command);

}  // namespace t3d
