# slow: all operations, with one, two and three node files
stride=1 first=1 files="1 2 3"
. "$T3D_SOURCE/tests/system/writer_faults.sh"
