# docs/20-install.md: cmake --install, then the tree is moved into a folder with a blank in its name: program, training, manual,
# completions and module file work there, and nothing names the folders of before.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
build=$(dirname "$T3D_BIN")
cmake --install "$build" --prefix "$PWD/first" > install.log 2>&1 || fail "cmake --install: $(tail -n 5 install.log)"
mkdir "far away"
mv first "far away/tree"
tree="$PWD/far away/tree"
share=$tree/share
if grep -rIl -e "$PWD/first" -e "$build" -e "$T3D_SOURCE/" "$tree"; then fail "these name folders of before"; fi
# Debug information names the build folder; without it nothing does.
if ! readelf -S "$tree/bin/transformer3d" | grep -q debug_info; then
  strings -a "$tree/bin/transformer3d" | grep -F -e "$PWD/first" -e "$build" -e "$T3D_SOURCE/" > paths.txt
  [[ ! -s paths.txt ]] || fail "the program names folders of before: $(head -n 3 paths.txt)"
fi
for link in "$share"/doc/transformer3d/{inputs/tiny.toml,jobs/one_node.sbatch,docs/02-input.md}; do
  [[ -s $link ]] || fail "no $link"
done

# The program, by PATH alone; one of the installed inputs.
PATH=$tree/bin:$PATH
T3D_BIN=transformer3d
run 1 --version
expect_status 0
make_text 20000
run 2 "$share/transformer3d/inputs/tiny.toml" -d run --set run.steps=2 --set "data.train='text.txt'" --set "data.valid='text.txt'" \
  --set eval.batches=1 --set schedule.warmup_steps=1 --set batch.sequences=4
expect_status 0
[[ -d run/ckpt/step-00000002 ]] || fail "no checkpoint"
# Job scripts start what PATH has; the one that is printed, this very program.
mkdir fake
printf '#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in -*) shift ;; *) break ;; esac; done\nexec "$@"\n' > fake/srun
chmod +x fake/srun
PATH=$PWD/fake:$PATH bash "$share/transformer3d/jobs/one_node.sbatch" run/resolved.toml --version > job.log || fail "one_node.sbatch"
grep -q '^transformer3d ' job.log || fail "one_node.sbatch did not start the program"
run 1 "$share/transformer3d/inputs/tiny.toml" --write-sbatch 2
expect_text "$tree/bin/transformer3d"

# Manual and completions have every command, every option that --help shows, and every key of the input.
page=$share/man/man1/transformer3d.1
bash_file=$share/bash-completion/completions/transformer3d
zsh_file=$share/zsh/site-functions/_transformer3d
commands=$(transformer3d --help | sed -n '/^subcommands:/I,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
[[ $(wc -w <<< "$commands") -ge 11 ]] || fail "no commands in --help"
for command in "" $commands; do
  # shellcheck disable=SC2086  # no command is no word
  transformer3d $command --help | sed -nE "s/^ {2,10}(-[a-z], *)?(--[a-z-]+).*/$command \\2/p"
done | sed 's/^ /main /' | sort -u > options.txt
transformer3d --input-reference | sed -n 's/^| `\([a-z0-9_]*\)` .*/\1/p' | sort -u > keys.txt
[[ $(wc -l < options.txt) -ge 60 && $(wc -l < keys.txt) -ge 100 ]] || fail "too few options or keys to compare"
sed 's/\\-/-/g; s/\\f[BRI]//g' "$page" > page.txt
awk '/^\.S[HS]/ { command = $2 == "OPTIONS" ? "main" : $2 }
  { for (i = 1; i <= NF && $i ~ /^-/; ++i) { sub(/,$/, "", $i); if ($i ~ /^--/) print command, $i } }' page.txt | sort -u > manual.txt
sed -n '/_options()/,/^}/p' "$bash_file" | awk -F"'" '/_offer/ { n = split($3, words, " ")
  for (i = 3; i <= n; ++i) print $2, words[i] }' | sort -u > bash.txt
awk -F'[(*[=]' '/^typeset -ga _transformer3d_/ { command = $1; sub(/_transformer3d_/, "", command); sub(/.* /, "", command); gsub(/_/, "-", command) }
  /^    .\*--/ { print command, $2 }' "$zsh_file" | sort -u > zsh.txt
for place in manual bash zsh; do
  lacking=$(comm -23 options.txt $place.txt)
  [[ -z "$lacking" ]] || fail "$place lacks $lacking"
done
grep -xF -f keys.txt page.txt | sort -u | cmp -s - keys.txt || fail "the manual lacks a key"
for command in $commands; do grep -qx ".SS $command" page.txt || fail "the manual lacks $command"; done
if command -v man > /dev/null; then
  LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" > man.txt 2> man.err || fail "man"
  [[ ! -s man.err ]] || fail "man warns: $(head -n 3 man.err)"
  for section in NAME SYNOPSIS OPTIONS COMMANDS INPUT "EXIT STATUS"; do
    grep -qx "$section" man.txt || fail "no section $section in the rendered manual"
  done
else
  echo "no man here: the page was not rendered"
fi

# The module file finds its tree.
lmod=/usr/share/lmod/lmod/init/bash
if [[ -r $lmod ]]; then
  bash --norc -c 'source "$1"; PATH=/usr/bin:/bin; module use "$2/share/modulefiles"; module load transformer3d
    command -v transformer3d; echo "$T3D_BIN"
    module unload transformer3d; command -v transformer3d' bash "$lmod" "$tree" > module.txt 2> module.err
  printf '%s\n' "$tree"/bin/transformer3d "$tree"/bin/transformer3d | cmp -s - module.txt ||
    fail "module load gives: $(cat module.txt module.err)"
else
  echo "no Lmod here: the module file was not loaded"
fi

# What bash's completion offers, word for word.
mkdir -p files/folder
touch files/a.toml files/b.json files/x.txt
offers() { # LINE WORD...: exactly these; the line ends where the user presses Tab
  local line=$1
  shift
  printf '%s\n' "$@" | sort > wanted.txt
  (cd files && bash --norc -c 'source "$1"; COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=" =:"; _transformer3d
    printf "%s\n" "${COMPREPLY[@]}"' bash "$bash_file" "$line") | sort -u > offered.txt
  cmp -s wanted.txt offered.txt || fail "'$line' offers: $(tr '\n' ' ' < offered.txt)instead of $*"
}
offers "transformer3d to" tokenize
# shellcheck disable=SC2086  # words
offers "transformer3d " $commands a.toml folder
offers "transformer3d a.toml --exp" --explain
offers "transformer3d tokenize --kind " bytes bpe unigram
offers "transformer3d tokenize x.txt --k" --kind
offers "transformer3d tokenize " a.toml b.json x.txt folder
offers "transformer3d -r " auto never folder
offers "transformer3d --restart=n" never
offers "transformer3d eval folder " a.toml b.json x.txt folder
offers "transformer3d eval " folder
offers "transformer3d simulate " b.json folder
offers "transformer3d a.toml --set model.pres" model.preset=
offers "transformer3d a.toml --set mesh.transport=n" nccl
offers "transformer3d plan a.toml --cluster a" a.toml
offers "transformer3d generate --tokens 5 fo" folder
offers "transformer3d report folder fo" folder

# And at a terminal, as the shells load it.
command -v python3 > /dev/null || exit 0
tab() { python3 "$T3D_SOURCE/tests/support/press_tab.py" "$@" || fail "completion in $SHELL_NAME"; }
cd files
cat > bash.setup <<SETUP
bind 'set show-all-if-ambiguous on'
bind 'set enable-bracketed-paste off'
source '$bash_file'
SETUP
SHELL_NAME=bash
tab bash.setup "transformer3d tok" "enize " -- bash --norc --noprofile -i
tab bash.setup "transformer3d a.toml --set mesh.device=c" cpu cuda -- bash --norc --noprofile -i
if command -v zsh > /dev/null; then
  printf "fpath=('%s' \$fpath)\nautoload -Uz compinit\ncompinit -u -D\n" "$(dirname "$zsh_file")" > zsh.setup
  SHELL_NAME=zsh
  tab zsh.setup "transformer3d tok" "enize " -- zsh -f -i
  tab zsh.setup "transformer3d tokenize --kind " bpe bytes unigram -- zsh -f -i
  tab zsh.setup "transformer3d a.toml --set mesh.device=c" cpu cuda -- zsh -f -i
  tab zsh.setup "transformer3d plan a" ".toml " -- zsh -f -i
else
  echo "no zsh here: its completion was not tried"
fi
