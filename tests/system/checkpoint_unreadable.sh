# Reading that fails: what cannot be read is not removed and not passed over, and a folder that cannot be
# listed is not an empty one.
. "$T3D_SOURCE/tests/support/checkpoint_tool.sh"
fail() { echo "FAILED: $*"; cat "$here/error"; ls -R "$here"; exit 1; }

# A manifest that cannot be read when retention looks at it: that checkpoint stays.
"$tool" save "$here/kept" 1 3 2 && "$tool" save "$here/kept" 2 3 2 || fail "two saves"
IO_FAULT_READ=step-00000001/MANIFEST.json LD_PRELOAD=$shim "$tool" save "$here/kept" 3 3 2 2> "$here/error" ||
  fail "a save beside an unreadable one"
[ -e "$here/kept/step-00000001/MANIFEST.json" ] || fail "removed what it could not read"
"$tool" save "$here/kept" 4 3 2 || fail "the save after it"
[ "$(ls "$here/kept" | tr '\n' ' ')" = "step-00000003 step-00000004 " ] || fail "$(ls "$here/kept")"

# A folder that cannot be listed is not an empty one.
IO_FAULT_LIST=$here/kept LD_PRELOAD=$shim "$tool" load "$here/kept" 9 3 > "$here/answer" 2> "$here/error"
[ $? = 74 ] || fail "not exit code 74 but $(cat "$here/answer")"
grep -q "$here/kept: Input/output error" "$here/error" || fail "the path is not named"

# A newest checkpoint of which something cannot be read is not damaged: no older one is taken for it.
newest=$here/kept/step-00000004
for name in MANIFEST.json "$(basename "$newest"/node-00000.*)"; do
  IO_FAULT_READ=$newest/$name LD_PRELOAD=$shim "$tool" load "$here/kept" 9 3 > "$here/answer" 2> "$here/error"
  [ $? = 74 ] || fail "$name: not exit code 74 but step $(cat "$here/answer")"
  grep -q "cannot read $newest/$name: Input/output error" "$here/error" || fail "the path is not named"
done
[ "$("$tool" load "$here/kept" 9 3)" = 4 ] || fail "readable again, it is not loaded"
# Real damage beside it: the older one.
truncate -s 100 "$newest"/node-00000.*
[ "$("$tool" load "$here/kept" 9 3 2> "$here/error")" = 3 ] || fail "a damaged one is not passed over"
