#include "tools/plan/elastic_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "io/posix_file.hpp"
#include "sched/sbatch.hpp"
#include "tools/plan/job_parts.hpp"
#include "tools/plan/node_memory.hpp"
#include "tools/plan/plan_input.hpp"

namespace t3d {
namespace {

/// The input of a phase. Where the batch changes, the run ends by its tokens, which the learning
/// rate's schedule follows then; every phase says the same number.
std::string phase_input(const ElasticPlan& plan, const std::vector<PhaseSteps>& phases,
                        std::size_t at, Config config, const Origins& origins) {
  index_t sequences = 0;
  bool grows = false;
  for (const PhaseSteps& phase : phases) {
    const index_t batch = plan.options[phase.size].batch;
    sequences += (phase.last - phase.first) * batch;
    grows = grows || batch != config.batch.sequences;
  }
  const ElasticOption& option = plan.options[phases[at].size];
  if (grows) {
    config.run.steps = 0;
    config.run.tokens = static_cast<double>(sequences) * static_cast<double>(config.model.context);
  }
  config.batch.sequences = option.batch;
  config.run.pause_at = at + 1 < phases.size() ? phases[at].last : 0;
  return planned_input(std::move(config), origins, option.found, option.job, "");
}

/// The end of submit.sh. What Slurm told the job that calls it is not the next one's, least of all
/// SLURM_RESTART_COUNT. A phase that has paused has a checkpoint: where none is seen, the next job
/// would pause at once and call again, for ever.
constexpr const char* kSubmit = R"sh(
for name in $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p'); do
  case $name in SLURM_CONF | SLURM_CLUSTERS | SLURM_JWT) ;; *) unset "$name" ;; esac
done
paused=${T3D_PAUSED##*/phase-}
paused=${paused%.toml}
if [ "$phase" -le "${paused:-0}" ]; then
  echo "submit.sh: phase $paused has paused, but $PWD has no checkpoint of it in $checkpoints" >&2
  exit 1
fi
after=${T3D_AFTER:+--dependency=afterany:$T3D_AFTER}
there=$(squeue -h -u "$(id -un)" -o '%i (%T) %o' 2> /dev/null |
  grep -F ") $folder/phase-$phase.sbatch" | grep -v '(COMPLETING)' | head -n 1)
if [ -n "$there" ]; then
  echo "submit.sh: phase $phase is job ${there%% /*} already: not submitted again" >&2
  [ -n "$after" ]
  exit # 0 where the job of the phase before asks: what it wants is done
fi
unset T3D_AFTER T3D_PAUSED
if [ -e "$options" ]; then
  eval "set -- $(cat "$options")"
  echo "submit.sh: sbatch$(cat "$options"), as $options says" >&2
fi
exec sbatch "$@" $after "$folder/phase-$phase.sbatch"
)sh";

/// Which phase: by the newest checkpoint, so that it may be called at any time by anybody. Options
/// are kept as words for a shell, in a file: a job's environment may not reach the next job.
std::string submit_text(const std::vector<PhaseSteps>& phases, const std::string& checkpoints,
                        const std::string& folder, const std::string& start) {
  std::string text = fmt::format(
      R"sh(#!/bin/sh
# Submits the phase of the run that its newest checkpoint is in; may be called from any folder.
# Each phase's job calls it in the end, for the next one. Options of sbatch stay for all phases,
# until others are given: sh submit.sh -A account -t 24:00:00
{}
folder={}
checkpoints={}
options=$folder/submit.options
if [ $# -gt 0 ]; then
  words=
  for word; do words="$words '$(printf '%s\n' "$word" | sed "s/'/'\\\\''/g")'"; done
  printf '%s\n' "$words" > "$options.new" && mv "$options.new" "$options" || exit
fi
# The newest lineage's, as the run itself goes on from: step-N, step-N.lineage-L, and either with .1 and so on.
newest=$(ls -d "$checkpoints"/step-* 2> /dev/null |
  sed -nE 's#.*/step-([0-9]+)\.lineage-([0-9]+)(\.[0-9]+)?$#\2 \1#p; t; s#.*/step-([0-9]+)(\.[0-9]+)?$#0 \1#p' |
  sort -k 1,1n -k 2,2n | tail -n 1)
step=$(echo "$newest" | sed 's/.* 0*//')
phase={}
)sh",
      enter_text(start), shell_word(folder), shell_word(checkpoints), phases.size());
  for (std::size_t at = phases.size() - 1; at-- > 0;)
    text +=
        fmt::format("if [ \"${{step:-0}}\" -lt {} ]; then phase={}; fi\n", phases[at].last, at + 1);
  return text + (kSubmit + 1);
}

}  // namespace

void write_elastic_files(const ElasticPlan& plan, const JobWish& wish, const Cluster& cluster,
                         const Config& config, const Origins& origins, const std::string& folder) {
  make_folder(folder);
  const std::string whole = std::filesystem::absolute(folder).lexically_normal().string();
  const std::string start = std::filesystem::current_path().string();
  const std::vector<PhaseSteps> phases = whole_steps(plan);
  for (std::size_t at = 0; at < phases.size(); ++at) {
    const std::string name = fmt::format("{}/phase-{}", whole, at + 1);
    write_text_durably(name + ".toml", phase_input(plan, phases, at, config, origins));
    SbatchWish script;
    script.name = config.run.name;
    script.program = std::filesystem::read_symlink("/proc/self/exe").string();
    script.input = name + ".toml";
    script.run_dir = config.run.dir;
    script.checkpoint_dir = config.checkpoint.dir;
    script.folder = start;
    const FoundPlan& found = plan.options[phases[at].size].found;
    script.ranks = found.plan.ranks;
    script.parts = sbatch_parts(found.parts, cluster);
    ask_memory(found, cluster, config.checkpoint.asynchronous, script.parts);
    if (phases.size() > 1) script.next = whole + "/submit.sh";
    write_text_durably(name + ".sbatch", sbatch_text(script));
  }
  write_text_durably(whole + "/submit.sh",
                     submit_text(phases, config.checkpoint.dir, whole, start));
  write_text_durably(whole + "/elastic.json", elastic_json(plan, wish, cluster));
}

std::vector<std::string> elastic_file_names() {
  std::vector<std::string> names{"submit.sh", "submit.options", "elastic.json"};
  for (int at = 1; at <= kMostPhases; ++at)
    for (const char* kind : {"toml", "sbatch"})
      names.push_back(fmt::format("phase-{}.{}", at, kind));
  return names;
}

}  // namespace t3d
