-- Lmod's module file of an installed tree, PREFIX/share/modulefiles/transformer3d/VERSION.lua:
--   module use PREFIX/share/modulefiles && module load transformer3d
-- PREFIX comes from where this file lies, so the tree may be moved. The MPI that the program was built
-- with must be loaded too; name it below if your site's modules do not.
local prefix = myFileName():match("^(.*)/share/modulefiles/") or "/usr"
help([[Trains transformer language models over MPI: srun -n 64 transformer3d input.toml
Examples of inputs and job scripts: $TRANSFORMER3D_ROOT/share/transformer3d; man transformer3d.]])
whatis("Name: transformer3d")
whatis("Version: " .. myModuleVersion())
whatis("Description: trains transformer language models over MPI")
conflict("transformer3d")
-- depends_on("openmpi")
setenv("TRANSFORMER3D_ROOT", prefix)
setenv("T3D_BIN", pathJoin(prefix, "bin/transformer3d")) -- what the job scripts start
prepend_path("PATH", pathJoin(prefix, "bin"))
-- man finds share/man beside a bin of PATH. bash-completion looks in XDG_DATA_DIRS, whose default must stay.
if (os.getenv("XDG_DATA_DIRS") or "") == "" then
   append_path("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
end
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share"))
