# slow: all operations
stride=1 first=1
. "$T3D_SOURCE/tests/system/checkpoint_faults.sh"
