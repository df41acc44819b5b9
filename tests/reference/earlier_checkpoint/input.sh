# Sourced: the input of the checkpoint in this folder. fp64, so that other processors agree.
make_earlier_input() {
  make_text 4000
  make_input
  sed -i 's/^hidden = 32/hidden = 8/; s/^heads = 4/heads = 2/; s/^context = 32/context = 8/
          s/^layers = 2/layers = 1/; s/^steps = 20/steps = 12/' input.toml
  cat >> input.toml <<'TOML'
[precision]
compute = "fp64"
[mesh]
replicas = 2
cuboid = [1, 1, 1]
[aggregate]
method = "adasum"
[schedule]
kind = "constant"
TOML
}
