// How long threads that wait for each other compute in vain before they give their core to others.
//
// GNU OpenMP lets a thread at a barrier spin for 300,000 rounds. Where another program is on one of
// the cores, the threads that have come spin while the one that they wait for has no core: a step
// of two threads beside one busy program takes seven times as long as alone. With 1,000 rounds it
// takes twice as long, and alone it is as fast as before (docs/numbers.md).
#pragma once

namespace t3d {

/// Limits the spinning, unless the environment says something of it (GOMP_SPINCOUNT,
/// OMP_WAIT_POLICY) or a process has one thread only. The OpenMP library reads its environment
/// before main(): the program starts itself anew, in the same process. Before the first thread,
/// signal mask or MPI call. Where that is not possible nothing happens.
void limit_spinning(char** argv);

}  // namespace t3d
