# Sourced: the input of the checkpoint in this folder, as small as can be, with keys of [balance] that
# are no longer read.
make_balance_input() {
  make_text 2000
  make_input
  sed -i 's/^hidden = 32/hidden = 2/; s/^heads = 4/heads = 1/; s/^context = 32/context = 8/
          s/^layers = 2/layers = 1/; s/^dropout.*/dropout = 0/; s/^micro.*/micro = 0/
          s/^kind = "off"/kind = "lbbsp_numeric"\npredictor = "narx"\ncoarse_step = 2/' input.toml
  cat >> input.toml <<'TOML'
[mesh]
replicas = 2
[schedule]
kind = "constant"
TOML
}
