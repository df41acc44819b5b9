#include "tools/scaling/slurm_study.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "sched/sbatch.hpp"

namespace t3d {
namespace {

/// The first task of a point that finds a finished run measures the operators of its plan, for the
/// roofline.
std::string operators_text() {
  const std::string words =
      fmt::format("\"{}\"", fmt::join(operators_words("$study/$point", "$folder"), "\" \""));
  return R"(if finished && [[ ! -e $study/$point/operators.json ]]; then
  "${launcher[@]}" "$program" )" +
         words + R"( > "$study/$point/operators.log" 2>&1 ||
    echo "$study/$point: its operators were not measured; see operators.log in it" >&2
fi
)";
}

/// As sbatch has it in the name of a log, where %A is a job.
std::string percent_doubled(const std::string& path) {
  std::string text;
  for (const char letter : path) text += letter == '%' ? "%%" : std::string(1, letter);
  return text;
}

}  // namespace

std::string slurm_study(const std::string& dir, const StudyPlan& plan, index_t ranks_per_node) {
  index_t most = 1;
  std::string names, ranks;
  for (const PlannedPoint& point : plan.points) {
    most = std::max(most, point.ranks);
    names += " " + shell_word(point.name);
    ranks += fmt::format(" {}", point.ranks);
  }
  const std::string study = std::filesystem::absolute(dir).lexically_normal().string();
  const std::string here = std::filesystem::current_path().string();
  if ((study + here).find('\n') != std::string::npos)
    throw_error(ExitCode::config, "{} cannot stand in a job script", study);
  const index_t per_node = std::min(most, ranks_per_node);
  return fmt::format(
      R"sh(#!/bin/bash
# A scaling study: {points} points, {repeats} times each, one run at a time. Submit it again to run what is missing;
# then: transformer3d scaling --collect {study}
# May be submitted from any folder: the runs start in {here}, where relative paths of the input begin.
#SBATCH --nodes={nodes} --ntasks-per-node={per_node}
#SBATCH --array=0-{last}%1
#SBATCH --time=01:00:00
#SBATCH --no-requeue
#SBATCH --job-name={name}
#SBATCH --output={log}
export SLURM_PMIX_FENCE=tree           # without it ranks die in MPI_Init now and then
export OMPI_MCA_mpi_yield_when_idle=1  # where ranks share cores, one that waits must give its core away
names=({names})
ranks=({ranks})
point=$((SLURM_ARRAY_TASK_ID % {points})) repeat=$((SLURM_ARRAY_TASK_ID / {points} + 1))
n=${{ranks[point]}} point=${{names[point]}}
{enter}
program={program}
study={study}
# One run at a time: of two jobs of this study the later one gives way, also where the earlier one still waits.
first=$(squeue -h -u "$(id -un)" -o '%F %o' 2> /dev/null | grep -F " $study/study.sbatch" | sort -n | head -n 1)
first=${{first%% *}}
if ((${{first:-0}} > 0 && first < ${{SLURM_ARRAY_JOB_ID:-0}})); then
  echo "$study is the study of job $first, too: submit this one again when that has ended" >&2
  exit 69
fi
folder=$study/$point/repeat-$repeat
nodes=$(((n + {per_node} - 1) / {per_node}))
launcher=(srun --mpi=pmix --kill-on-bad-exit=1 --wait=0 --nodes=$nodes --ntasks=$n --ntasks-per-node=$(((n + nodes - 1) / nodes)))
[[ -n ${{T3D_LAUNCHER:-}} ]] && launcher=(${{T3D_LAUNCHER//\{{ranks\}}/$n}})
finished() {{ grep -qs '"code": 0,' "$folder/exit.json"; }}
status=0
if ! finished; then
  # Another job, or a call of scaling, may be at it.
  if [[ -e $folder ]] && "$program" status --json "$folder" 2> /dev/null | grep -q '"alive": *true'; then
    echo "$folder is being run by somebody else" >&2
    exit 69
  fi
  [[ -e $folder ]] && mv "$folder" "$folder.unfinished-$SLURM_JOB_ID"
  "${{launcher[@]}}" "$program" "$study/$point/input.toml" -q -d "$folder"
  status=$?
  finished && rm -rf "$folder/ckpt"
fi
{operators}exit $status
)sh",
      fmt::arg("points", plan.points.size()), fmt::arg("repeats", plan.repeats),
      fmt::arg("study", shell_word(study)),
      fmt::arg("log", shell_word(percent_doubled(study) + "/slurm-%A-%a.log")),
      fmt::arg("nodes", (most + per_node - 1) / per_node), fmt::arg("per_node", per_node),
      fmt::arg("last", std::ssize(plan.points) * plan.repeats - 1),
      fmt::arg("name", shell_word(plan.title)), fmt::arg("names", names.substr(1)),
      fmt::arg("ranks", ranks.substr(1)), fmt::arg("here", shell_word(here)),
      fmt::arg("operators", plan.roofline ? operators_text() : ""),
      fmt::arg("enter", enter_text(here)),
      fmt::arg("program", shell_word(std::filesystem::read_symlink("/proc/self/exe").string())));
}

}  // namespace t3d
