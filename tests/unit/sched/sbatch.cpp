// Job scripts: what stands in them, and that bash reads the words that were meant.
#include "sched/sbatch.hpp"

#include "core/error.hpp"
#include "sched/ask.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

SbatchWish wish() {
  return {"my run",
          "/opt/t3d/transformer3d",
          "/data/it's.toml",
          "runs/x y",
          "kept/x y",
          64,
          {"--set", "run.name='a b'"},
          {}};
}

}  // namespace

TEST_CASE("a script has the run's own lines and leaves the site's to sbatch") {
  const std::string text = sbatch_text(wish());
  for (const char* line :
       {"#!/bin/bash\n", "#SBATCH --ntasks=64\n", "#SBATCH --job-name='my run'\n",
        "#SBATCH --requeue\n", "#SBATCH --open-mode=append\n", "#SBATCH --signal=USR2@",
        "\nprogram=/opt/t3d/transformer3d\n", "\nrun='runs/x y'\nckpt='kept/x y'\n",
        "\ntasks=--ntasks=64\n", "export SLURM_PMIX_FENCE=tree",
        "export OMPI_MCA_mpi_yield_when_idle=1", "--kill-on-bad-exit=1", "--wait=0"})
    CHECK_THAT(text, Catch::Contains(line));
  for (const char* line : {"--partition", "--time", "#SBATCH --nodes", "T3D_BIN"})
    CHECK_THAT(text, !Catch::Contains(line));
  SbatchWish open = wish();
  open.ranks = 0;
  CHECK_THAT(sbatch_text(open),
             Catch::Contains("\ntasks=--ntasks-per-node=1\n") && !Catch::Contains("--ntasks="));
}

TEST_CASE("each component of a job has its own lines, and one step has the ranks of all") {
  SbatchWish mixed = wish();
  mixed.ranks = 20;
  mixed.parts.resize(2);
  SbatchPart &gpus = mixed.parts[0], &cores = mixed.parts[1];
  gpus.nodes = gpus.ranks_per_node = 4;
  gpus.gpus_per_rank = 1;
  gpus.constraint = "a100&ib";
  cores.nodes = cores.ranks_per_node = 2;
  cores.cores_per_rank = 16;
  cores.partition = "cpu";
  cores.exclude = "n[1-4]";
  const std::string text = sbatch_text(mixed);
  const std::size_t second = text.find("\n#SBATCH hetjob\n"), script = text.find("\nprogram=");
  REQUIRE((second != std::string::npos && second < script));
  const std::string first = text.substr(0, second), rest = text.substr(second, script + 1 - second);
  for (const char* line : {"#SBATCH --nodes=4\n", "#SBATCH --ntasks-per-node=4\n",
                           "#SBATCH --gpus-per-task=1\n", "#SBATCH --constraint='a100&ib'\n"}) {
    CHECK_THAT(first, Catch::Contains(line));
    CHECK_THAT(rest, !Catch::Contains(line));
  }
  for (const char* line :
       {"#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=2\n", "#SBATCH --cpus-per-task=16\n",
        "#SBATCH --partition=cpu\n", "#SBATCH --exclude='n[1-4]'\n", "#SBATCH --exclusive\n"})
    CHECK_THAT(rest, Catch::Contains(line));
  CHECK_THAT(text, !Catch::Contains("--ntasks=") && Catch::Contains("\ntasks=--het-group=0,1\n"));
  CHECK(output_of({"bash", "-n", "-c", text}, 10) == "");
  mixed.parts.pop_back();
  CHECK_THAT(sbatch_text(mixed),
             !Catch::Contains("hetjob") && Catch::Contains("\ntasks=--ntasks=20\n"));
}

TEST_CASE("a script goes to its folder, and says so, behind the lines for Slurm") {
  SbatchWish placed = wish();
  placed.folder = "/data/my runs";
  placed.parts.resize(2);
  const std::string text = sbatch_text(placed);
  const std::size_t enter = text.find("\ncd '/data/my runs' || exit 66\n");
  REQUIRE(enter != std::string::npos);
  CHECK(text.rfind("#SBATCH") < enter);
  CHECK(enter < text.find("\nprogram="));
  CHECK_THAT(text, Catch::Contains("# May be submitted from any folder: it starts in '/data/my "
                                   "runs'"));
  CHECK(output_of({"bash", "-n", "-c", text}, 10) == "");
  CHECK_THAT(sbatch_text(wish()), !Catch::Contains("\ncd "));
}

TEST_CASE("bash reads what was meant") {
  const std::string text = sbatch_text(wish());
  CHECK(output_of({"bash", "-n", "-c", text}, 10) == "");
  // Its settings alone.
  const std::size_t begin = text.find("\nprogram="), end = text.find("\nexport SLURM");
  const std::string show =
      text.substr(begin, end - begin) +
      "\nprintf '[%s]' \"$program\" \"$input\" \"$run\" \"$ckpt\" \"${more[@]}\"";
  CHECK(output_of({"bash", "-c", show, "script", "-v", "x y"}, 10) ==
        "[/opt/t3d/transformer3d][/data/it's.toml][runs/x y][kept/x y][--set][run.name='a "
        "b'][-v][x y]");
}

TEST_CASE("words for a shell") {
  CHECK(shell_word("a/b-c_1.toml") == "a/b-c_1.toml");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("$(x) `y` \"z\" \\") == "'$(x) `y` \"z\" \\'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK_THROWS_AS(shell_word("a\nb"), Error);
}

}  // namespace t3d::test
