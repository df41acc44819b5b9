// What the program can be asked to do, one function per command. All are collective over `world`
// and return the exit code; what all ranks know to be wrong is thrown as AgreedError.
#pragma once
#include <functional>

#include "comm/communicator.hpp"
#include "tools/command_line.hpp"

namespace t3d {

int run_write_sbatch(Communicator& world, const CommandLine& command);
int run_dry(Communicator& world, const CommandLine& command);
int run_evaluation(Communicator& world, const CommandLine& command);
int run_generation(Communicator& world, const CommandLine& command);
int run_tokenize(Communicator& world, const CommandLine& command);
int run_plan(Communicator& world, const CommandLine& command);
int run_probe(Communicator& world, const CommandLine& command);
int run_calibrate(Communicator& world, const CommandLine& command);
int run_inspect(Communicator& world, const CommandLine& command);
int run_export(Communicator& world, const CommandLine& command);
int run_import(Communicator& world, const CommandLine& command);
int run_simulation(Communicator& world, const CommandLine& command);
int run_scaling(Communicator& world, const CommandLine& command);
int run_report(Communicator& world, const CommandLine& command);
int run_status(Communicator& world, const CommandLine& command);
int run_watch(Communicator& world, const CommandLine& command);

}  // namespace t3d
