// Clusters from what Slurm's commands print, written after the forms of Slurm 22.05 and 24.11, and
// lists of nodes.
#include "tools/calibrate/slurm_cluster.hpp"

#include <numeric>

#include "core/error.hpp"
#include "core/node_list.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

/// 22.05: two kinds of CPU nodes under two switches, a preemptible partition, a node that is down.
SlurmTexts of_2205() {
  SlurmTexts texts;
  texts.nodes =
      "low|3|idle|64|2|32|1|256000|ib,rome|(null)|n[1-3]\n"
      "low|1|down*|64|2|32|1|256000|ib,rome|(null)|n4\n"
      "low|2|mixed|32|2|8|2|128000|haswell|(null)|old[01-02]\n"
      "high|3|idle|64|2|32|1|256000|ib,rome|(null)|n[1-3]\n"
      "high|1|down*|64|2|32|1|256000|ib,rome|(null)|n4\n";
  texts.partitions =
      "PartitionName=low AllowGroups=ALL Default=YES QoS=N/A GraceTime=30 MaxNodes=UNLIMITED "
      "MaxTime=2-00:00:00 MinNodes=0 Nodes=n[1-4],old[01-02] PriorityJobFactor=1 PriorityTier=1 "
      "OverSubscribe=NO PreemptMode=REQUEUE State=UP TotalCPUs=320 TotalNodes=6 "
      "TRESBillingWeights=CPU=1.0,Mem=0.25G\n"
      "PartitionName=high AllowGroups=ALL Default=NO QoS=N/A GraceTime=0 MaxNodes=2 "
      "MaxTime=UNLIMITED MinNodes=0 Nodes=n[1-4] PriorityJobFactor=1 PriorityTier=10 "
      "OverSubscribe=NO PreemptMode=REQUEUE State=UP TotalCPUs=256 TotalNodes=4\n";
  texts.config =
      "Configuration data as of 2026-03-01T12:00:00\n"
      "ClusterName             = example\n"
      "PreemptMode             = REQUEUE\n"
      "PreemptType             = preempt/partition_prio\n"
      "PriorityFlags           = \n"
      "TopologyPlugin          = topology/tree\n";
  texts.topology =
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-4]\n"
      "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=old[01-02]\n"
      "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4],old[01-02] Switches=s[0-1]\n";
  return texts;
}

/// 24.11: GPUs, the largest part is billed, no preemption, no topology.
SlurmTexts of_2411() {
  SlurmTexts texts;
  texts.nodes =
      "gpu|16|idle|96|2|24|2|1031000|(null)|gpu:a100:4(S:0-1)|gpu[001-016]\n"
      "gpu|1|drained|96|2|24|2|1031000|(null)|gpu:a100:4(S:0-1)|gpu017\n";
  texts.partitions =
      "PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES "
      "QoS=N/A DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO ExclusiveTopo=NO GraceTime=0 "
      "Hidden=NO MaxNodes=8 MaxTime=12:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED "
      "MaxCPUsPerSocket=UNLIMITED Nodes=gpu[001-017] PriorityJobFactor=1 PriorityTier=1 "
      "RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF State=UP "
      "TotalCPUs=1632 TotalNodes=17 SelectTypeParameters=NONE JobDefaults=(null) "
      "TRES=cpu=1632,mem=17527000M,node=17,billing=1632,gres/gpu=68 "
      "TRESBillingWeights=CPU=0.5,Mem=0.01G,GRES/gpu:a100=16\n";
  texts.config =
      "ClusterName             = gpus\nPreemptType             = (null)\n"
      "PriorityFlags           = MAX_TRES\n";
  return texts;
}

}  // namespace

TEST_CASE("classes, partitions and switches of Slurm 22.05") {
  std::vector<std::string> notes;
  const Cluster cluster = slurm_cluster_of(of_2205(), notes);
  CHECK(cluster.name == "example");
  REQUIRE(cluster.classes.size() == 2);
  const NodeClass &rome = cluster.classes[0], &old = cluster.classes[1];
  CHECK(rome.name == "ib-cpu64-250g");
  CHECK(rome.nodes == 3);
  CHECK(rome.node_list == "n[1-3]");
  CHECK(rome.cores_per_rank == 64);
  CHECK(rome.memory_bytes == index_t{256000} << 20);
  CHECK(rome.features == std::vector<std::string>{"ib", "rome"});
  CHECK(rome.partition == "low");
  CHECK(rome.preemptible);
  CHECK(rome.price_per_node_hour == Approx(64 + 0.25 * 250));
  CHECK(rome.currency == "billing units");
  CHECK(rome.calibration.state == Calibrated::no);
  CHECK(old.cores_per_rank == 16);
  CHECK(old.node_list == "old[01-02]");
  REQUIRE(cluster.scheduler.partitions.size() == 2);
  const SchedulerPartition &low = cluster.scheduler.partitions[0],
                           &high = cluster.scheduler.partitions[1];
  CHECK(low.time_limit_seconds == 2 * 86400);
  CHECK(low.grace_seconds == 30);
  CHECK(low.preemptible);
  CHECK(low.fallback);
  CHECK(low.classes == std::vector<std::string>{rome.name, old.name});
  CHECK(high.time_limit_seconds == 0);
  CHECK(high.most_nodes == 2);
  CHECK(!high.preemptible);
  CHECK(high.classes == std::vector<std::string>{rome.name});
  REQUIRE(cluster.levels.size() == 3);
  CHECK(cluster.levels[1].name == "leaf");
  CHECK(cluster.levels[1].nodes == 4);
  CHECK(cluster.levels[2].name == "core");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("n4") != std::string::npos);
}

TEST_CASE("GPUs, MAX_TRES and no topology of Slurm 24.11") {
  std::vector<std::string> notes;
  const Cluster cluster = slurm_cluster_of(of_2411(), notes);
  REQUIRE(cluster.classes.size() == 1);
  const NodeClass& one = cluster.classes[0];
  CHECK(one.name == "4xa100");
  CHECK(one.nodes == 16);
  CHECK(one.ranks_per_node == 4);
  CHECK(one.gpus_per_rank == 1);
  CHECK(one.cores_per_rank == 12);
  CHECK(one.device == "a100");
  CHECK(one.memory_bytes == 0);
  CHECK(!one.preemptible);
  CHECK(cluster.scheduler.bills_largest);
  CHECK(one.price_per_node_hour == 64);
  CHECK(cluster.scheduler.partitions[0].time_limit_seconds == 12 * 3600);
  REQUIRE(cluster.levels.size() == 2);
  CHECK(cluster.levels[1].name == "network");
}

TEST_CASE("memory is asked for where Slurm gives it out") {
  std::vector<std::string> notes;
  const auto asks = [&](const std::string& parameters, const SlurmTexts& of) {
    SlurmTexts texts = of;
    if (!parameters.empty()) texts.config += "SelectTypeParameters    = " + parameters + "\n";
    return slurm_cluster_of(texts, notes).classes.front().asks_memory;
  };
  CHECK(asks("", of_2205()) == AsksMemory::unknown);
  CHECK(asks("CR_CORE_MEMORY", of_2205()) == AsksMemory::yes);
  CHECK(asks("CR_Core_Memory,CR_ONE_TASK_PER_CORE", of_2205()) == AsksMemory::yes);
  CHECK(asks("CR_CORE", of_2205()) == AsksMemory::no);
  SlurmTexts own = of_2205();  // a partition that differs from the rest
  own.partitions.insert(own.partitions.find('\n'), " SelectTypeParameters=CR_CORE_MEMORY");
  CHECK(asks("CR_CORE", own) == AsksMemory::yes);
  SlurmTexts unset = of_2205();
  unset.nodes = "low|2|idle|4|1|4|1|1|(null)|(null)|n[1-2]\n";  // no RealMemory: 1 MiB
  CHECK(asks("", unset) == AsksMemory::no);
  CHECK(asks("CR_CORE_MEMORY", unset) == AsksMemory::no);
  CHECK(slurm_cluster_of(unset, notes).classes.front().memory_bytes == 0);
}

TEST_CASE("billing weights and their units") {
  const Billing weights = billing_of_weights("CPU=2,Mem=0.5,GRES/gpu=1,GRES/gpu:h100=4,Node=3");
  CHECK(weights.core == 2);
  CHECK(weights.memory_gib == 512);
  CHECK(weights.gpu == 4);
  CHECK(weights.node == 3);
  CHECK(billing_of_weights("Mem=2T").memory_gib == Approx(2.0 / 1024));
  CHECK(billing_of_weights("(null)").core == 0);
  CHECK(billing_of_weights("CPU=-1,Mem=nanG").core == 0);
}

TEST_CASE("texts that say nothing are no cluster, and broken ones no crash") {
  std::vector<std::string> notes;
  CHECK_THROWS_AS(slurm_cluster_of({}, notes), Error);
  SlurmTexts texts;
  texts.nodes = "a|b\nlow|1|idle|9999999999999|2|-1|x|1e300|f|gpu:99999999999999999999|n1\n";
  const Cluster cluster = slurm_cluster_of(texts, notes);
  REQUIRE(cluster.classes.size() == 1);
  CHECK(cluster.classes[0].ranks_per_node >= 1);
}

TEST_CASE("lists of hosts, read and written") {
  using Names = std::vector<std::string>;
  CHECK(names_of_node_list("n[1-3,7],gpu01") == Names{"n1", "n2", "n3", "n7", "gpu01"});
  CHECK(names_of_node_list("r[1-2]n[08-10]-ib") ==
        Names{"r1n08-ib", "r1n09-ib", "r1n10-ib", "r2n08-ib", "r2n09-ib", "r2n10-ib"});
  CHECK(names_of_node_list("").empty());
  for (const char* broken : {"n[", "n[1", "n[3-1]", "n[a-b]", "n[]", "n[1-999999999999]"})
    CHECK(names_of_node_list(broken).empty());
  CHECK(node_list_of({"n3", "n1", "n2", "login", "n7"}) == "login,n[1-3,7]");
  CHECK(node_list_of({"g009", "g010", "g011"}) == "g[009-011]");
  CHECK(node_list_of({"n5"}) == "n5");
}
