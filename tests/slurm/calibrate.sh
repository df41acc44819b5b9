# slow: half a minute
# calibrate --from-slurm fills a file with what this Slurm knows; a job measures its nodes into it.
source "$T3D_SOURCE/tests/support/slurm.sh"

start_cluster 2 --low GraceTime=7 --low "TRESBillingWeights=CPU=2.0,Mem=0.5G"
"$T3D_BIN" calibrate --from-slurm -o c.toml > told.txt 2>&1 || fail "from-slurm: $(cat told.txt)"
cat told.txt
says() { grep -q -- "$1" c.toml || { cat c.toml; fail "c.toml does not say $1"; }; }
says '^kind = "slurm"'
says '^node_list = "n\[1-2\]"'
says '^nodes = 2 '
says '^grace_seconds = 7 '
says '^bills_core = 2$'
says '^bills_memory_gib = 0.5$'
says '^currency = "billing units"'
says '^preemptible = true'
says '^calibrated = "uncalibrated"'
name=$(sed -n '/^\[\[class\]\]/,/^nodes/s/^name = "\([^"]*\)".*/\1/p' c.toml)

srun -p high -N 2 --mpi=pmix "$T3D_BIN" calibrate --seconds 4 --formats fp32 --add c.toml -o c.toml > measured.txt 2>&1 ||
  fail "the job: $(cat measured.txt)"
says "^name = \"$name\""
[[ $(grep -c '^\[\[class\]\]' c.toml) == 1 ]] || fail "the job's nodes are another class than Slurm's"
says '^calibrated = "measured"'
says '^currency = "billing units"'
[[ $(grep -c '^name = "network"' c.toml) == 2 ]] || fail "no level between nodes was measured"
awk '/^\[\[level\]\]/ { level = 1 } /^alpha_seconds = / { if (level && $3 > 0) found = 1 } END { exit !found }' c.toml ||
  fail "no latency was measured"
