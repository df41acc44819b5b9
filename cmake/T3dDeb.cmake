# cd build/cpu && cpack -G DEB: transformer3d_VERSION_ARCHITECTURE.deb of the CPU build. What it links is found by
# dpkg-shlibdeps, so the package fits the release of Debian or Ubuntu that it is made on.
set(CPACK_PACKAGE_NAME transformer3d)
set(CPACK_PACKAGE_VENDOR "The transformer3d authors")
set(CPACK_PACKAGE_CONTACT "The transformer3d authors <transformer3d@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains transformer language models over MPI")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "One MPI program that trains transformer language models on clusters whose
nodes may differ in speed. Every matrix is cut over a p x q x r cuboid of
ranks, replicas are combined by Adasum, and a checkpoint of one shape can be
loaded by any other.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian_tree.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)  # mpirun
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "hdf5-tools, slurm-client")
include(CPack)
